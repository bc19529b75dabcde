"""A redirect of Django's handler leads to a path of this site, never to another host."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin
from django.utils.http import url_has_allowed_host_and_scheme

HOME = "/console/"


class OwnRedirects(MiddlewareMixin):
    """Sends to the console where an answer would lead elsewhere.

    The sign-in and the sign-out lead to `next` if its host is the Host of the request, which the caller chooses where
    ALLOWED_HOSTS is `*`. Here instead of in these two: no address of ours has to name a host, so none may.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        location = response.headers.get("Location")
        if 300 <= response.status_code < 400 and location and not url_has_allowed_host_and_scheme(location, None):
            response.headers["Location"] = HOME
        return response
