"""The console's frame: Unfold's admin site, with pages for tables that the admin cannot register."""

import itertools
from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.core.exceptions import BadRequest
from django.core.paginator import InvalidPage
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.sites import UnfoldAdminSite

from access import roles
from console.pages import overview
from console.pages.routes import ROUTES
from console.users import sign_in
from store.cells import cells
from store.process import doors


def refuse_nul(request: HttpRequest) -> None:
    """Raises BadRequest (400) for an address with a NUL in its path or its query."""
    texts = itertools.chain([request.path], request.GET, *(values for _, values in request.GET.lists()))
    if any("\0" in text for text in texts):
        raise BadRequest("The address contains a NUL character, which no name may contain: remove the character.")


class ConsoleSite(UnfoldAdminSite):  # type: ignore[misc]  # Unfold ships no types
    """The operator's console."""

    site_header = "mqbroker"
    site_title = "mqbroker console"
    index_title = "Overview"
    index_template = "console/overview.html"
    login_template = "console/login.html"
    login_form = sign_in.SignInForm

    def has_permission(self, request: HttpRequest) -> bool:
        """Whether a user with a role signed in."""
        return roles.of(request.user) is not None

    def extra_urls(self) -> list[URLPattern]:
        """The console's own pages; `admin_view` makes all pages except the entrances require a signed-in operator."""
        entrances = [path(route, view, name=name) for route, view, name in doors.added(doors.To.ENTRANCES)]
        return [*entrances, *(path(route, self.admin_view(view), name=name) for route, view, name in ROUTES)]

    def admin_view(self, view: Callable[..., HttpResponseBase], cacheable: bool = False) -> Callable[..., Any]:
        """Wraps each view, including Django's own.

        Refuses a NUL in the address, because no text of PostgreSQL may contain it.
        """
        guarded = super().admin_view(view, cacheable)

        @wraps(guarded)
        def without_nul(request: HttpRequest, *args: Any, **named: Any) -> HttpResponseBase:
            refuse_nul(request)
            # `frame.show` names a cell that is away on the page.
            with cells.leaving_out():
                answer: HttpResponseBase = guarded(request, *args, **named)
            return answer

        return without_nul

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        try:
            found: HttpResponseBase = super().search(request, extra_context)
        except (InvalidPage, ValueError) as problem:
            raise Http404("The search has no such page.") from problem
        return found

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        page: TemplateResponse = super().index(request, {**overview.figures(request), **(extra_context or {})})
        return page

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        onward = urlencode({"next": request.GET.get("next", "")})
        ways = [(title, f"{reverse(f'admin:{name}')}?{onward}") for title, name in doors.added(doors.To.SIGN_INS)]
        shown = {"ways": ways, "has_passwords": settings.SIGN_ON_LOCAL_USERS, **(extra_context or {})}
        return sign_in.with_wait(request, super().login(request, shown))

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        request.current_app = self.name
        view = sign_in.OwnPasswordView.as_view(
            form_class=sign_in.OwnPasswordForm,
            success_url=reverse("admin:password_change_done", current_app=self.name),
            template_name=self.password_change_template or "registration/password_change_form.html",
            extra_context={**self.each_context(request), **(extra_context or {})},
        )
        return sign_in.with_wait(request, view(request))
