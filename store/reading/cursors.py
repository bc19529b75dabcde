"""Cursors: the place at which a list continues (in the API an opaque text), and the lengths of the pages of lists."""

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

Cursor = TypeVar("Cursor")


def encode(cursor: object) -> str:
    """The text of a cursor for the API."""
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def decode(text: str | None, type_: type[Cursor]) -> Cursor | None:
    """The cursor of a text; None for no text. Raises MessageIllegal if the text is not a cursor of this list."""
    return _decoded(text, lambda raw: _in_utc(msgspec.json.decode(raw, type=type_)))


def decode_each(text: str | None, type_: type[Cursor]) -> dict[int, Cursor] | None:
    """Decodes the cursors of a list over all cells: a cursor for each cell. Raises MessageIllegal, as `decode` does."""
    return _decoded(text, lambda raw: from_plain(msgspec.json.decode(raw), type_))


def encode_each(each: Mapping[int, object] | None) -> str | None:
    """The text of the cursors of a list over all cells; None after the last page."""
    return None if each is None else encode(to_plain(each))


def to_plain(each: Mapping[int, object]) -> Any:
    """Cursors as JSON values. If the control has the only cursor, this cursor is not wrapped in an object."""
    return msgspec.to_builtins(each[CONTROL] if each.keys() == {CONTROL} else each, str_keys=True)


def from_plain(plain: Any, type_: type[Cursor]) -> dict[int, Cursor]:
    """The cursors from JSON values, with their times in UTC. Raises ValueError or OverflowError."""
    if not isinstance(plain, dict):
        plain = {str(CONTROL): plain}
    each: dict[int, Cursor] = msgspec.convert(plain, GenericAlias(dict, (int, type_)), str_keys=True)
    return {cell: _in_utc(cursor) for cell, cursor in each.items()}


def _decoded(text: str | None, read: Callable[[bytes], Cursor]) -> Cursor | None:
    if text is None:
        return None
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        if b"\\u0000" not in raw:
            return read(raw)
    except (ValueError, OverflowError, msgspec.MsgspecError, RecursionError):
        pass
    raise MessageIllegal(
        f"cursor {text[:60]!r} does not belong to this list: give the value of `next` in the list's previous page."
    )


def _in_utc(cursor: Cursor) -> Cursor:
    """The cursor with its times in UTC, because PostgreSQL refuses an offset of 16 hours. Raises OverflowError."""
    if not isinstance(cursor, tuple):
        return cursor
    make: Callable[..., Cursor] = type(cursor)
    return make(*[value.astimezone(UTC) if isinstance(value, datetime) else value for value in cursor])
