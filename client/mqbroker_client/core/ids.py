"""Ids that the client makes itself, so that every repeated request is the same request."""

import os
import time
from typing import Any
from uuid import UUID, uuid5


def uuid7() -> UUID:
    """A UUID version 7 (RFC 9562): 48 bits of milliseconds, then random ones; what is made later sorts later."""
    return UUID(int=_value())


def _value() -> int:
    # Python has uuid.uuid7 only since 3.14.
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | random
    value = value & ~(0xF << 76) | 0x7 << 76
    return value & ~(0x3 << 62) | 0x2 << 62


class OwnId(UUID):
    """The id of a message whose program chose none: it belongs to the first transaction that the message is tried in.

    The broker takes an id for one transaction only. In another one, the same message object has another id, which is
    derived, so that a request that is repeated there still names the same message.
    """

    __slots__ = ("_transactions",)

    @classmethod
    def make(cls) -> "OwnId":
        made = cls(int=_value())
        # Past the immutability of a UUID, as its own __init__ does.
        object.__setattr__(made, "_transactions", {})
        return made

    def within(self, transaction_id: UUID) -> UUID:
        # `setdefault` is atomic: of two threads that try one message at once, one has its first transaction.
        first: UUID = self._transactions.setdefault("first", transaction_id)  # type: ignore[attr-defined]  # by `make`
        return self if first == transaction_id else uuid5(transaction_id, str(self))

    def __repr__(self) -> str:
        return f"UUID('{self}')"

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process, which cannot know what was tried here, it is an id like any other.
        return UUID, (str(self),)
