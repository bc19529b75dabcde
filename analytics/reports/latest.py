"""Reads the charts of the latest reports for the console. Does not need the extra `analytics`."""

from analytics.models import ReportChart


def charts() -> list[ReportChart]:
    """The charts in their order; empty before the first report for the console."""
    return list(ReportChart.objects.order_by("number"))
