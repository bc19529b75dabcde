"""The page of the latest reports: their charts, and of when they are."""

import json

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from analytics.models import ReportChart
from analytics.reports import latest
from console.pages import frame
from store import stats as store_stats

# Of the series of a chart, in their order. Names that mean an outcome have the colour that they have elsewhere.
COLOURS = ("var(--color-primary-500)", "var(--color-primary-300)", "var(--color-primary-700)", "var(--color-base-400)")
OUTCOMES = {
    "committed": "var(--mq-committed)",
    "rolled back": "var(--mq-rolled-back)",
    "discarded": "var(--mq-alarm)",
    "dead letters": "var(--mq-alarm)",
}


@require_GET
def reports(request: HttpRequest) -> HttpResponse:
    """The charts of the latest reports that were made for the console."""
    charts = latest.charts()
    return frame.show(
        request,
        "console/reports.html",
        "Reports",
        now=store_stats.now(),
        taken_at=charts[0].taken_at if charts else None,
        charts=[(chart, data(chart), options(chart)) for chart in charts],
        nightly_to=settings.EXPORT_NIGHTLY_TO,
        nightly_at=settings.EXPORT_NIGHTLY_AT,
    )


def data(chart: ReportChart) -> str:
    """A chart as Chart.js wants it."""
    datasets = [
        {
            "label": name,
            "data": values,
            "backgroundColor": OUTCOMES.get(name, COLOURS[number % len(COLOURS)]),
            "borderRadius": 2,
        }
        for number, (name, values) in enumerate(chart.series.items())
    ]
    return json.dumps({"labels": chart.labels, "datasets": datasets})


def options(chart: ReportChart) -> str:
    """How Chart.js draws it: quiet axes, and the series named where there are several."""
    ticks = {"color": "#9ca3af"}
    return json.dumps(
        {
            "animation": False,
            "maintainAspectRatio": False,
            "plugins": {"legend": {"display": len(chart.series) > 1, "labels": {"color": "#9ca3af", "boxWidth": 10}}},
            "scales": {
                "x": {"stacked": chart.stacked, "grid": {"display": False}, "ticks": {**ticks, "maxTicksLimit": 12}},
                "y": {
                    "stacked": chart.stacked,
                    "border": {"display": False},
                    "grid": {"lineWidth": 0.5},
                    "ticks": ticks,
                },
            },
        }
    )
