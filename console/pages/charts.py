"""The page of the charts over time: of the whole broker, of one topic or of one consumer group."""

from typing import get_args

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.monitoring.history import charts as history
from console.monitoring.history.charts import SPANS, Chart, Of
from console.pages import drawing, frame
from store import stats as store_stats

FIRST_SPAN = "1h"


@require_GET
def charts(request: HttpRequest) -> HttpResponse:
    """The charts of `topic` or `group`, or else of the broker, over the `span`."""
    chosen = request.GET.get("span", FIRST_SPAN)
    span = SPANS.get(chosen, SPANS[FIRST_SPAN])
    of, name = subject(request)
    now = store_stats.now()
    found = history.read(of, name, span, now)
    return frame.show(
        request,
        "console/charts.html",
        f"{of.capitalize()} {name} over time" if name else "Charts over time",
        now=now,
        of=of,
        name=name,
        span=span,
        spans=[(key, one.label) for key, one in SPANS.items()],
        names={one: history.names(one, span) for one in get_args(Of) if one != "broker"},
        charts=[(chart.kind, *drawn(chart, days=span.step_seconds > 900)) for chart in found],
        is_empty=all(value is None for chart in found for line in chart.lines.values() for value in line),
        days=settings.HISTORY_DAYS,
    )


def subject(request: HttpRequest) -> tuple[Of, str]:
    """What the charts are of, and its name: a topic goes before a group."""
    for of in get_args(Of):
        if name := request.GET.get(of, "").strip():
            return of, name
    return "broker", ""


def drawn(chart: Chart, *, days: bool) -> tuple[str, str]:
    """A chart's data and options; its times in UTC."""
    labels = [time.strftime("%m-%d %H:%M" if days else "%H:%M") for time in chart.times]
    return drawing.lines(labels, chart.lines), drawing.options(labels, chart.lines)
