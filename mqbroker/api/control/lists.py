"""Lists: pages of a fixed order, each with the cursor of the next one."""

import base64
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import msgspec
from rest_framework import serializers
from rest_framework.response import Response

from mqbroker.api.control.fields import Given, Shape, Strict
from store.errors import MessageIllegal

DEFAULT_LIMIT = 100
MAX_LIMIT = 500

Row = TypeVar("Row")
Place = TypeVar("Place")


class PageQuery(Given):
    """Which page of a list is asked for."""

    limit = serializers.IntegerField(
        default=DEFAULT_LIMIT,
        min_value=1,
        max_value=MAX_LIMIT,
        error_messages={**Strict.default_error_messages, "invalid": "it is no whole number."},
        help_text="How many results at most.",
    )
    cursor = serializers.CharField(default=None, help_text="`next` of the page before; without it: the first page.")


@cache
def page_of(shape: type[Shape]) -> type[Shape]:
    """The shape of a page of these, for the schema and for answers."""
    fields = {
        "results": shape(many=True),
        "next": serializers.CharField(allow_null=True, help_text="The cursor of the next page; null on the last one."),
        "__doc__": "A page of a list.",
    }
    return type(f"{shape.__name__}Page", (Shape,), fields)


def answer(shape: type[Shape], rows: Sequence[Row], limit: int, place_of: Callable[[Row], object]) -> Response:
    """A page of the first `limit` rows; that there is one more tells that there is a next page."""
    shown = rows[:limit]
    following = cursor(place_of(shown[-1])) if len(rows) > limit else None
    return Response({"results": shape(shown, many=True).data, "next": following})


def cursor(place: object) -> str:
    """A place in a list as an opaque text."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def place(given: str | None, type_: type[Place]) -> Place | None:
    """The place that a cursor names; None for no cursor.

    Raises MessageIllegal when it is none of this list.
    """
    if given is None:
        return None
    try:
        raw = base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True)
        if b"\\u0000" not in raw:
            return msgspec.json.decode(raw, type=type_)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        pass
    raise MessageIllegal(f"cursor {given[:60]!r} is none of this list: give `next` of its last page.")
