"""The shape of a request before it is parsed: how many fields it has, for each costs as much as a byte of it or more.

A request of 4 MiB may have two million empty messages, which take 150 MB and hold up the event loop for 0.25 s.
"""

from functools import cache
from typing import Any, TypeAlias

from google.protobuf.descriptor import Descriptor

# Shorter requests are parsed as they are: in 4 ms at most.
SHORT_BYTES = 64 * 1024
# A batch of 1,000 messages with 20 fields and properties each. So many are counted in 15 ms.
MAX_FIELDS = 20_000
# Bits of a number on the wire, at most.
MOST_BITS = 64

# By the number of each field that is a message: the fields of that message.
Inner: TypeAlias = "dict[int, Inner]"
_VARINT, _FIXED64, _TEXT, _FIXED32 = 0, 1, 2, 5


def has_too_many_fields(given: bytes, kind: Any) -> bool:
    """Whether the bytes of a message of this kind have more than MAX_FIELDS; those of a short one are not counted."""
    if len(given) <= SHORT_BYTES:
        return False
    try:
        _count(given, 0, len(given), _inner(kind.DESCRIPTOR), MAX_FIELDS)
    except IndexError:
        # No message of any kind, which the parser says in its own words.
        return False
    except TooMany:
        return True
    return False


class TooMany(Exception):
    """There are more fields than are counted."""


@cache
def _inner(descriptor: Descriptor) -> Inner:
    """The fields of a kind of message that are messages; no kind of the protocol has one of its own kind within."""
    return {field.number: _inner(field.message_type) for field in descriptor.fields if field.message_type is not None}


def _count(given: bytes, at: int, end: int, inner: Inner, left: int) -> int:
    """How many fields are left of a number once those from `at` to `end` are counted. Raises TooMany, or IndexError."""
    while at < end:
        left -= 1
        if left < 0:
            raise TooMany
        tag, at = _varint(given, at)
        kind = tag & 7
        if kind == _TEXT:
            size, at = _varint(given, at)
            if (fields := inner.get(tag >> 3)) is not None:
                left = _count(given, at, min(at + size, end), fields, left)
            at += size
        elif kind == _VARINT:
            _, at = _varint(given, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            # A group, which no client sends.
            raise TooMany
    return left


def _varint(given: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = given[at]
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
        shift += 7
        if shift > MOST_BITS:
            raise IndexError
