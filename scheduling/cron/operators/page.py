"""The page of schedules: the message and next times of each schedule, and why a message was refused."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.pages import frame
from scheduling.cron import registry

PAGE = 25
SHOWN_TIMES = 3


@require_GET
def all_schedules(request: HttpRequest) -> HttpResponse:
    """Schedules by name."""
    found, shown = frame.by_name(request, registry.page, PAGE, in_namespaces=False)
    rows = [(row, registry.next_times(row, SHOWN_TIMES)) for row in found]
    return frame.show(request, "console/schedules.html", "Schedules", rows=rows, **shown)


PAGES = (("schedules/", all_schedules, "schedules"),)
