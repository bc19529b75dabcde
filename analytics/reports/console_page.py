"""The page of the latest reports: their charts and their time."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from analytics.models import ReportChart
from console.pages import drawing, frame
from store import stats as store_stats


@require_GET
def reports(request: HttpRequest) -> HttpResponse:
    """The charts of the latest reports that were made for the console."""
    charts = list(ReportChart.objects.order_by("number"))
    return frame.show(
        request,
        "console/reports.html",
        "Reports",
        now=store_stats.now(),
        taken_at=charts[0].taken_at if charts else None,
        charts=[(chart, *drawn(chart)) for chart in charts],
        nightly_to=settings.EXPORT_NIGHTLY_TO,
        nightly_at=settings.EXPORT_NIGHTLY_AT,
    )


def drawn(chart: ReportChart) -> tuple[str, str]:
    """A chart's data and options."""
    return (
        drawing.bars(chart.labels, chart.series),
        drawing.options(chart.labels, chart.series, stacked=chart.stacked),
    )


PAGES = (("reports/", reports, "reports"),)
