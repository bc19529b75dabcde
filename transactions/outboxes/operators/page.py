"""The page of outboxes: the source of each, its waiting rows, and why it cannot be drained."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.pages import counts, frame
from store.stats import now
from transactions.outboxes import registry
from transactions.outboxes.drain import MAX_WAITING

PAGE = 25


@require_GET
def all_outboxes(request: HttpRequest) -> HttpResponse:
    """Outboxes by name."""
    matching = request.GET.get("q", "").strip()
    page = counts.part(registry.page(request.GET.get("after", ""), PAGE + 1, matching), PAGE)
    return frame.show(
        request,
        "console/outboxes.html",
        "Outboxes",
        now=now(),
        rows=page.rows,
        matching=matching,
        query=frame.kept(request),
        after=page.after,
        max_waiting=MAX_WAITING,
    )


PAGES = (("outboxes/", all_outboxes, "outboxes"),)
