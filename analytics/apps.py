"""The export as a Django app, and what it adds to the broker."""

from typing import ClassVar

from store.process import doors
from store.process.doors import To

TICKS = (doors.Tick("analytics.nightly", 30.0, needs="EXPORT_NIGHTLY_TO"),)
LINKS = (doors.Link("cells", "Reports", "bar_chart", "reports"),)


class AnalyticsConfig(doors.Door):
    """The export of the broker's tables to Parquet."""

    name = "analytics"
    adds: ClassVar = {
        To.COMMAND_LINE: "management.manners.BEGINNINGS",
        To.BEAT: "apps.TICKS",
        To.PAGES: "reports.console_page.PAGES",
        To.SIDEBAR: "apps.LINKS",
        To.METRICS: "nightly.watching.METRICS",
        To.SURROUNDINGS: "nightly.watching.SURROUNDINGS",
    }
