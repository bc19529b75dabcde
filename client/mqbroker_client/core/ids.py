"""Ids that the client makes itself, so that a repeated request has the same ids."""

import os
import time
from typing import Any
from uuid import UUID, uuid5


def uuid7() -> UUID:
    """A UUID version 7 (RFC 9562): 48 bits of milliseconds, then random bits.

    A later UUID sorts after an earlier one.
    """
    return UUID(int=_value())


def _value() -> int:
    # uuid.uuid7 only exists since Python 3.14.
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | random
    value = value & ~(0xF << 76) | 0x7 << 76
    return value & ~(0x3 << 62) | 0x2 << 62


class OwnId(UUID):
    """The id of a message for which the program chose none.

    The id belongs to the first transaction in which the message is tried, because the broker accepts an id in only one
    transaction. In another transaction the same message object gets an id derived from this id, so that a repeated
    request there has the same id again.
    """

    __slots__ = ("_transactions",)

    @classmethod
    def make(cls) -> "OwnId":
        made = cls(int=_value())
        # A UUID forbids setting attributes, so the attribute is set by `object.__setattr__`, as UUID's own __init__
        # does.
        object.__setattr__(made, "_transactions", {})
        return made

    def within(self, transaction_id: UUID) -> UUID:
        # `setdefault` is atomic: if two threads try the same message at the same time, both use the same transaction
        # id.
        first: UUID = self._transactions.setdefault("first", transaction_id)  # type: ignore[attr-defined]  # set by `make`
        return self if first == transaction_id else uuid5(transaction_id, str(self))

    def __repr__(self) -> str:
        return f"UUID('{self}')"

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy in another process is an ordinary UUID: that process knows nothing of earlier attempts.
        return UUID, (str(self),)
