"""Makes redirects of Django's handler lead to a path of this site, never to another host."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin
from django.utils.http import url_has_allowed_host_and_scheme

from console.users.away import RedirectAway

HOME = "/console/"


class OwnRedirects(MiddlewareMixin):
    """Replaces a redirect to another host by a redirect to the console.

    Sign-in and sign-out redirect to `next` if its host equals the request's Host header, which the caller chooses if
    ALLOWED_HOSTS is `*`. In all views only a RedirectAway may lead to another host.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        location = None if isinstance(response, RedirectAway) else response.headers.get("Location")
        if 300 <= response.status_code < 400 and location and not url_has_allowed_host_and_scheme(location, None):
            response.headers["Location"] = HOME
        return response
