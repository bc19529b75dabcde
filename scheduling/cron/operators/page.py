"""The page of schedules: the message and next times of each schedule, and why a message was refused."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.pages import counts, frame
from scheduling.cron import registry
from store.stats import now

PAGE = 25
SHOWN_TIMES = 3


@require_GET
def all_schedules(request: HttpRequest) -> HttpResponse:
    """Schedules by name."""
    matching = request.GET.get("q", "").strip()
    page = counts.part(registry.page(request.GET.get("after", ""), PAGE + 1, matching), PAGE)
    return frame.show(
        request,
        "console/schedules.html",
        "Schedules",
        now=now(),
        rows=[(row, registry.next_times(row, SHOWN_TIMES)) for row in page.rows],
        matching=matching,
        query=frame.kept(request),
        after=page.after,
    )


PAGES = (("schedules/", all_schedules, "schedules"),)
