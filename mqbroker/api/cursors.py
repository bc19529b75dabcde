"""Cursors: a place in a list as an opaque text, and how long the pages of lists are."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from store.errors import MessageIllegal

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
    if cursor is None:
        return None
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        if b"\\u0000" not in raw:
            return _in_utc(msgspec.json.decode(raw, type=type_))
    except (ValueError, OverflowError, msgspec.MsgspecError, RecursionError):
        pass
    raise MessageIllegal(f"cursor {cursor[:60]!r} is none of this list: give `next` of its last page.")


def _in_utc(place: Place) -> Place:
    """The place, its times in UTC: PostgreSQL takes no offset of 16 hours. Raises OverflowError."""
    if not isinstance(place, tuple):
        return place
    make: Callable[..., Place] = type(place)
    return make(*[value.astimezone(UTC) if isinstance(value, datetime) else value for value in place])
