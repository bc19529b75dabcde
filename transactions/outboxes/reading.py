"""Reads a row of an outbox as a message, field by field. A refusal names the column that cannot be read."""

import base64
import math
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from store.errors import MessageIllegal
from store.messages import Message
from store.messages.fields import MAX_TRACEPARENT
from store.messages.properties import CONTROL
from transactions.outboxes.rows import Row

Shape = TypeVar("Shape", bound=Message)


class Field(NamedTuple):
    """A field of a message, the function that reads it from the text of its column, and the rule for valid texts."""

    name: str
    read: Callable[[str], Any]
    rule: str


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("it has no time zone")
    return found


def _seconds(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError(f"it is {found}")
    return found


_TIME = "a timestamptz of the years 1 to 9999"
# The fields by column, except body_bytes and traceparent.
FIELDS = {
    "topic": Field("topic", str, "a text"),
    "body": Field("body", str, "a text"),
    "id": Field("message_id", uuid.UUID, "a uuid"),
    "tags": Field("tags", str, "a text"),
    "keys": Field("keys", msgspec.json.Decoder(list[str]).decode, "an array of texts"),
    "sharding_key": Field("sharding_key", str, "a text"),
    "properties": Field("properties", msgspec.json.Decoder(dict[str, str] | None).decode, "an object of texts"),
    "delay_level": Field("delay_level", int, "a whole number"),
    "delay_seconds": Field("delay_seconds", _seconds, "a number"),
    "deliver_at": Field("deliver_at", _moment, _TIME),
    "created_at": Field("born_at", _moment, _TIME),
}
_COLUMNS = [(column, Row._fields.index(column), field) for column, field in FIELDS.items()]


def message_of(row: Row, shape: type[Shape]) -> Shape:
    """The message of a row; it is validated later, like a message by HTTP. Raises MessageIllegal with the column."""
    if row.id is None:
        raise MessageIllegal("id is null, so a repetition would be sent as another message: give a uuid.")
    found: dict[str, Any] = {}
    for column, place, field in _COLUMNS:
        text = row[place]
        if text is not None:
            found[field.name] = _read(column, field, text)
    if row.body_bytes is not None:
        found["body_base64"] = base64.b64encode(row.body_bytes).decode()
    return shape(**found)


def _read(column: str, field: Field, text: Any) -> Any:
    try:
        return field.read(text)
    except (ValueError, ArithmeticError, RecursionError) as problem:
        raise MessageIllegal(f"{column} cannot be read ({problem}): give {field.rule}.") from None


def traceparent_of(row: Row) -> str | None:
    """The trace of a row. Raises MessageIllegal."""
    given = row.traceparent
    if given is not None and (len(given) > MAX_TRACEPARENT or CONTROL.search(given)):
        raise MessageIllegal(
            f"traceparent {given[:60]!r} cannot be used: give at most {MAX_TRACEPARENT} characters, without "
            "control characters."
        )
    return given
