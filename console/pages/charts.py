"""The page of the charts over time: of the whole broker, of one namespace, one topic or one consumer group."""

from typing import get_args

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.monitoring.history import charts as history
from console.monitoring.history.charts import SPANS, Chart, Of, Span
from console.monitoring.history.figures import MAX_REGISTERED
from console.pages import drawing, frame
from store import stats as store_stats
from store.naming.namespaces import part_of

FIRST_SPAN = "1h"


@require_GET
def charts(request: HttpRequest) -> HttpResponse:
    """The charts of `topic`, `group` or `namespace`, or else of the broker, over the `span`.

    With a namespace, only its topics and groups are offered.
    """
    chosen = request.GET.get("span", FIRST_SPAN)
    span = SPANS.get(chosen, SPANS[FIRST_SPAN])
    narrowed = frame.within(request)
    of, name = subject(request, narrowed["namespace"])
    now = store_stats.now()
    found = history.read(of, name, span, now)
    is_recorded = of != "namespace" or name in narrowed["namespaces"]
    return frame.show(
        request,
        "console/charts.html",
        f"{of.capitalize()} {name} over time" if name else "Charts over time",
        now=now,
        of=of,
        name=name,
        span=span,
        spans=[(key, one.label) for key, one in SPANS.items()],
        names={one: offered(one, span, narrowed["namespace"]) for one in ("topic", "group")},
        **narrowed,
        charts=[(chart.kind, *drawn(chart, days=span.step_seconds > 900)) for chart in found],
        is_empty=not is_recorded
        or all(value is None for chart in found for line in chart.lines.values() for value in line),
        days=settings.HISTORY_DAYS,
        namespaces_limit=MAX_REGISTERED,
    )


def subject(request: HttpRequest, namespace: str | None) -> tuple[Of, str]:
    """The kind and name of the charts' subject: a topic in the address takes precedence over a group, and a group over
    a namespace.

    A topic or group outside the namespace is left out: it was chosen before the namespace.
    """
    for of in get_args(Of):
        name = request.GET.get(of, "").strip()
        if name and (of == "namespace" or namespace in (None, part_of(name))):
            return of, name
    return "broker", ""


def offered(of: Of, span: Span, namespace: str | None) -> list[str]:
    """The topics or groups to choose from."""
    return [name for name in history.names(of, span) if namespace in (None, part_of(name))]


def drawn(chart: Chart, *, days: bool) -> tuple[str, str]:
    """A chart's data and options for the browser, with times in UTC."""
    labels = [time.strftime("%m-%d %H:%M" if days else "%H:%M") for time in chart.times]
    return drawing.lines(labels, chart.lines), drawing.options(labels, chart.lines)
