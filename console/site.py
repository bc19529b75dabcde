"""The console's frame: Unfold's admin site under our name."""

from unfold.sites import UnfoldAdminSite


class ConsoleSite(UnfoldAdminSite):
    """The operator's console."""

    site_header = "mqbroker"
    site_title = "mqbroker console"
    index_title = "Overview"
