"""The page of outboxes: the source of each, its waiting rows, and why it cannot be drained."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.pages import frame
from transactions.outboxes import registry
from transactions.outboxes.drain import MAX_WAITING

PAGE = 25


@require_GET
def all_outboxes(request: HttpRequest) -> HttpResponse:
    """Outboxes by name."""
    rows, shown = frame.by_name(request, registry.page, PAGE, in_namespaces=False)
    return frame.show(request, "console/outboxes.html", "Outboxes", rows=rows, max_waiting=MAX_WAITING, **shown)


PAGES = (("outboxes/", all_outboxes, "outboxes"),)
