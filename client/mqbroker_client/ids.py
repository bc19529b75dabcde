"""Ids that the client makes itself, so that every repeated request is the same request."""

import os
import time
from uuid import UUID


def uuid7() -> UUID:
    """A UUID version 7 (RFC 9562): 48 bits of milliseconds, then random ones; what is made later sorts later."""
    # Python has uuid.uuid7 only since 3.14.
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | random
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)
