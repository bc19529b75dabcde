"""Shows a template inside Unfold's frame, and says what is missing where there is nothing to show."""

from typing import Any, TypeVar

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse

from access import namespaces
from store.cells import cells
from store.errors import MessageIllegal
from store.reading import cursors

Cursor = TypeVar("Cursor")
# Offered to narrow a list; any other may be in the address.
NAMESPACES = 200


def show(request: HttpRequest, template: str, title: str, **shown: object) -> TemplateResponse:
    """A page of the console; its commands to copy begin with `broker`."""
    known = {**admin.site.each_context(request), "title": title, "broker": address(request)}
    known["missing"] = cells.missing()
    return TemplateResponse(request, template, {**known, **shown})


def not_there(request: HttpRequest, sentence: str, back_to: str) -> TemplateResponse:
    """A page that says what does not exist, and leads back to the list of what does."""
    page = show(request, "console/not_there.html", "Not found", sentence=sentence, back_to=f"admin:{back_to}")
    page.status_code = 404
    return page


def address(request: HttpRequest) -> str:
    """Where the operator reaches this broker: what a command to copy begins with."""
    return f"{request.scheme}://{request.get_host()}"


def whole_number(request: HttpRequest, name: str) -> int:
    """A number of the address, not below 0; what is no number counts as 0."""
    value = request.GET.get(name, "")
    # 18 digits fit into the 64 bits of an offset.
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 18 else 0


def after(request: HttpRequest, type_: type[Cursor]) -> dict[int, Cursor] | None:
    """Where a list goes on in each cell. A cursor of the address that cannot be read starts from the front."""
    try:
        return cursors.decode_each(request.GET.get("after") or None, type_)
    except MessageIllegal:
        return None


def narrowing(request: HttpRequest) -> dict[str, Any]:
    """What a list by name is narrowed to: a part of the name, and a namespace, of those that are offered."""
    return {"matching": request.GET.get("q", "").strip(), **within(request)}


def within(request: HttpRequest) -> dict[str, Any]:
    """The namespace that a list is narrowed to, None for all, and those that are offered."""
    offered = [row.name for row in namespaces.page("", NAMESPACES)]
    return {"namespace": request.GET.get("namespace", "").strip() or None, "namespaces": offered}


def kept(request: HttpRequest, *but: str) -> str:
    """The query of the address without the cursor, for the way to the next page."""
    query = request.GET.copy()
    for name in ("after", *but):
        query.pop(name, None)
    return query.urlencode()
