"""Ids that the client makes itself, so that every repeated request is the same request."""

from os import urandom
from time import time_ns
from typing import Any, TypeVar
from uuid import UUID, SafeUUID, uuid5

AnyId = TypeVar("AnyId", bound=UUID)

MOMENT = 0xFFFF_FFFF_FFFF << 80
VERSION_AND_VARIANT = 0x7 << 76 | 0x2 << 62
RANDOM = (1 << 80) - 1 & ~(0xF << 76 | 0x3 << 62)


def uuid7() -> UUID:
    """A UUID version 7 (RFC 9562): 48 bits of milliseconds, then random ones; what is made later sorts later."""
    return _made(UUID)


def _made(kind: type[AnyId]) -> AnyId:
    # Python has uuid.uuid7 only since 3.14. Past the immutability of a UUID and the checks of its __init__, which take
    # six times as long.
    made = object.__new__(kind)
    object.__setattr__(made, "int", _value())
    object.__setattr__(made, "is_safe", SafeUUID.unknown)
    return made


def _value() -> int:
    random = int.from_bytes(urandom(10), "big")
    # The first 4 bits are those of the version, 2 bits behind the next 12 those of the variant.
    return time_ns() // 1_000_000 << 80 & MOMENT | random & RANDOM | VERSION_AND_VARIANT


class OwnId(UUID):
    """The id of a message whose program chose none: it belongs to the first transaction that the message is tried in.

    The broker takes an id for one transaction only. In another one, the same message object has another id, which is
    derived, so that a request that is repeated there still names the same message.
    """

    __slots__ = ("_transactions",)

    @classmethod
    def make(cls) -> "OwnId":
        made = _made(cls)
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
