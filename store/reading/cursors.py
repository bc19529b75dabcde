"""Cursors: a place in a list as an opaque text, and how long the pages of lists are."""

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import GenericAlias
from typing import Any, TypeVar

import msgspec

from store.errors import MessageIllegal
from store.process.runtime import CONTROL

DEFAULT_LIMIT = 100
MAX_LIMIT = 500

Place = TypeVar("Place")


def encode(place: object) -> str:
    """The cursor of a place in a list."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def decode(cursor: str | None, type_: type[Place]) -> Place | None:
    """The place of a cursor; None for no cursor.

    Raises MessageIllegal when it is none of this list.
    """
    return _decoded(cursor, lambda raw: _in_utc(msgspec.json.decode(raw, type=type_)))


def decode_places(cursor: str | None, type_: type[Place]) -> dict[int, Place] | None:
    """The places of a cursor of a list over all cells, by the cell; as `decode`."""
    return _decoded(cursor, lambda raw: from_plain(msgspec.json.decode(raw), type_))


def encode_places(places: Mapping[int, object] | None) -> str | None:
    """The cursor of a list over all cells; None after its last page."""
    return None if places is None else encode(to_plain(places))


def to_plain(places: Mapping[int, object]) -> Any:
    """Places as JSON has them: that of the control alone stands for itself."""
    return msgspec.to_builtins(places[CONTROL] if places.keys() == {CONTROL} else places, str_keys=True)


def from_plain(plain: Any, type_: type[Place]) -> dict[int, Place]:
    """The places that were made plain, each in UTC. Raises ValueError or OverflowError."""
    if not isinstance(plain, dict):
        plain = {str(CONTROL): plain}
    places: dict[int, Place] = msgspec.convert(plain, GenericAlias(dict, (int, type_)), str_keys=True)
    return {cell: _in_utc(place) for cell, place in places.items()}


def _decoded(cursor: str | None, read: Callable[[bytes], Place]) -> Place | None:
    if cursor is None:
        return None
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        if b"\\u0000" not in raw:
            return read(raw)
    except (ValueError, OverflowError, msgspec.MsgspecError, RecursionError):
        pass
    raise MessageIllegal(f"cursor {cursor[:60]!r} is none of this list: give `next` of its last page.")


def _in_utc(place: Place) -> Place:
    """The place, its times in UTC: PostgreSQL takes no offset of 16 hours. Raises OverflowError."""
    if not isinstance(place, tuple):
        return place
    make: Callable[..., Place] = type(place)
    return make(*[value.astimezone(UTC) if isinstance(value, datetime) else value for value in place])
