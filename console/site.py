"""The console's frame: Unfold's admin site under our name, with the pages for tables that the admin cannot register."""

from typing import Any

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from unfold.sites import UnfoldAdminSite

from console.pages import overview
from console.pages.routes import ROUTES


class ConsoleSite(UnfoldAdminSite):  # type: ignore[misc]  # Unfold ships no types
    """The operator's console."""

    site_header = "mqbroker"
    site_title = "mqbroker console"
    index_title = "Overview"
    index_template = "console/overview.html"
    login_template = "console/login.html"

    def extra_urls(self) -> list[URLPattern]:
        """Our own pages; `admin_view` asks for a signed-in operator."""
        return [path(route, self.admin_view(view), name=name) for route, view, name in ROUTES]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        page: TemplateResponse = super().index(request, {**overview.figures(request), **(extra_context or {})})
        return page
