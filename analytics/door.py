"""The additions of the export and its reports to the parts of the broker."""

from store.process.doors import Adds, Link, Tick, To

ADDS: Adds = {
    To.COMMAND_LINE: "management.manners.BEGINNINGS",
    To.BEAT: (Tick("analytics.nightly", 30.0, "analytics.nightly", needs="EXPORT_NIGHTLY_TO"),),
    To.PAGES: "reports.console_page.PAGES",
    To.SIDEBAR: (Link("cells", "Reports", "bar_chart", "reports"),),
    To.METRICS: "nightly.watching.METRICS",
    To.SURROUNDINGS: "nightly.watching.SURROUNDINGS",
}
