"""Lists: pages in a fixed order, each with the cursor of the next page."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

from rest_framework import serializers
from rest_framework.response import Response

from mqbroker.api.control.fields import Strict, Text, Words
from mqbroker.api.control.shapes import Given, Shape
from store.reading import cursors
from store.reading.cursors import DEFAULT_LIMIT, MAX_LIMIT

Row = TypeVar("Row")


class PageQuery(Given):
    """The query parameters of a list: the size of a page, and where it begins."""

    limit = serializers.IntegerField(
        default=DEFAULT_LIMIT,
        min_value=1,
        max_value=MAX_LIMIT,
        error_messages={**Strict.default_error_messages, "invalid": "it is no whole number."},
        help_text="The maximum number of results.",
    )
    cursor = serializers.CharField(default=None, help_text="`next` of the previous page; without it, the first page.")


@cache
def page_of(shape: type[Shape]) -> type[Shape]:
    """The shape of a page of such objects, for the schema and for answers."""
    return _page_of(shape)


@cache
def page_of_cells(shape: type[Shape]) -> type[Shape]:
    """The shape of a page that collects objects of all cells."""
    meaning = "The cells that did not answer: what they hold is not on this page, and on a later one if they are back."
    return _page_of(shape, missing=Words(child=Text(), help_text=meaning))


def _page_of(shape: type[Shape], **more: serializers.Field[Any, Any, Any, Any]) -> type[Shape]:
    fields = {
        "results": shape(many=True),
        "next": serializers.CharField(allow_null=True, help_text="The cursor of the next page; null on the last page."),
        **more,
        "__doc__": "A page of a list.",
    }
    return type(f"{shape.__name__}Page", (Shape,), fields)


class Named(Protocol):
    """An object with a name, by which lists are sorted."""

    @property
    def name(self) -> str:
        """The name."""


def by_name(
    shape: type[Shape],
    query: Mapping[str, Any],
    rows_behind: Callable[..., Sequence[Named]],
    namespace: str | None = None,
) -> Response:
    """Answers with the page of a list by name that the query asks for.

    `rows_behind` reads a number of rows after a name, within the namespace if there is one.
    """
    limit = query["limit"]
    within = {} if namespace is None else {"namespace": namespace}
    rows = rows_behind(cursors.decode(query["cursor"], str) or "", limit + 1, **within)
    return answer(shape, rows, limit, lambda row: row.name)


def answer(shape: type[Shape], rows: Sequence[Row], limit: int, cursor_of: Callable[[Row], object]) -> Response:
    """Answers with a page of the first `limit` rows. One row more means that there is a next page."""
    shown = rows[:limit]
    following = cursors.encode(cursor_of(shown[-1])) if len(rows) > limit else None
    return Response({"results": shape(shown, many=True).data, "next": following})
