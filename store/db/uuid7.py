"""Ids made by the broker: UUIDv7, so that neighbours in time are neighbours in an index."""

import os
import time
from datetime import datetime
from uuid import UUID

# Random bytes are read from the system for 400 ids at a time: one call per id was 4 % of a send.
STOCK_BYTES = 10 * 400
_stock = bytearray()
# A child process must not continue its parent's stock: it would make the same ids.
os.register_at_fork(after_in_child=_stock.clear)


def _random_bytes() -> bytes:
    if not _stock:
        _stock.extend(os.urandom(STOCK_BYTES))
    taken = bytes(_stock[-10:])
    del _stock[-10:]
    return taken


def new_id() -> UUID:
    """A UUIDv7 (RFC 9562): 48 bits of milliseconds, then random bits.

    Not `uuid_utils.compat.uuid7`, which takes 0.77 µs instead of 1.2 µs: its time never goes back. After the clock was
    set back by an hour its ids have the later hour for an hour, and stats from `first_id_of` on count them wrongly.
    0.4 µs is 0.2 % of a send.
    """
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(_random_bytes())
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)


def first_id_of(at: datetime) -> UUID:
    """The lowest UUIDv7 of a time."""
    milliseconds = max(int(at.timestamp() * 1000), 0)
    return UUID(int=milliseconds << 80)
