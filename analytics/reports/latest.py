"""The charts of the latest reports, as the console reads them: without the extra `analytics`."""

from analytics.models import ReportChart


def charts() -> list[ReportChart]:
    """The charts in their order; none before the first report for the console."""
    return list(ReportChart.objects.order_by("number"))
