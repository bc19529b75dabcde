"""Shows a template inside Unfold's frame, or a page for an object that does not exist."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse

from access import namespaces
from store.cells import cells
from store.errors import MessageIllegal
from store.reading import cursors
from store.stats import now

Cursor = TypeVar("Cursor")
# The most namespaces that a list offers as a filter. The address may have any other namespace.
NAMESPACES = 200


class Named(Protocol):
    """A row of a list by name."""

    @property
    def name(self) -> str:
        """The name."""


Row = TypeVar("Row", bound=Named)


def show(request: HttpRequest, template: str, title: str, **shown: object) -> TemplateResponse:
    """A page of the console. Commands on the page use the address `broker`."""
    known = {**admin.site.each_context(request), "title": title, "broker": address(request)}
    known["missing"] = cells.missing()
    return TemplateResponse(request, template, {**known, **shown})


def not_there(request: HttpRequest, sentence: str, back_to: str) -> TemplateResponse:
    """A page with a sentence about an object that does not exist, and a link to the list."""
    page = show(request, "console/not_there.html", "Not found", sentence=sentence, back_to=f"admin:{back_to}")
    page.status_code = 404
    return page


def address(request: HttpRequest) -> str:
    """The URL at which the operator reaches this broker, for commands to copy."""
    return f"{request.scheme}://{request.get_host()}"


def whole_number(request: HttpRequest, name: str) -> int:
    """A number in the address, at least 0; a text that is no number counts as 0."""
    value = request.GET.get(name, "")
    # 18 digits fit into the 64 bits of an offset.
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 18 else 0


def after(request: HttpRequest, type_: type[Cursor]) -> dict[int, Cursor] | None:
    """The cursor of a list in each cell, from the address. An unreadable cursor counts as none: the first page."""
    try:
        return cursors.decode_each(request.GET.get("after") or None, type_)
    except MessageIllegal:
        return None


def by_name(
    request: HttpRequest, page_of: Callable[..., Sequence[Row]], size: int, *, in_namespaces: bool = True
) -> tuple[list[Row], dict[str, Any]]:
    """A page of a list by name, and the other values that its template shows.

    `page_of` reads a number of rows after a name, filtered by a part of the name and, `in_namespaces`, by a namespace.
    """
    values = narrowing(request) if in_namespaces else {"matching": request.GET.get("q", "").strip()}
    filters = {name: value for name, value in values.items() if name != "namespaces"}
    # One row more shows whether there is a next page.
    found = page_of(request.GET.get("after", ""), size + 1, **filters)
    following = found[size - 1].name if len(found) > size else ""
    return list(found[:size]), {"now": now(), "after": following, "query": kept(request), **values}


def narrowing(request: HttpRequest) -> dict[str, Any]:
    """The filter of a list by name: a part of the name, the namespace, and the offered namespaces."""
    return {"matching": request.GET.get("q", "").strip(), **within(request)}


def within(request: HttpRequest) -> dict[str, Any]:
    """The namespace that filters a list (None: all), and the offered namespaces."""
    offered = [row.name for row in namespaces.page("", NAMESPACES)]
    return {"namespace": request.GET.get("namespace", "").strip() or None, "namespaces": offered}


def kept(request: HttpRequest, *but: str) -> str:
    """The query of the address without the cursor and the fields `but`, for the link to the next page."""
    query = request.GET.copy()
    for name in ("after", *but):
        query.pop(name, None)
    return query.urlencode()
