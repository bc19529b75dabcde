"""Asks the identity provider again, when it is due, whether the user of a session is still signed in there."""

import time
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.deprecation import MiddlewareMixin

# The view of mozilla-django-oidc to which the provider sends the browser back writes this time into the session.
DUE = "oidc_id_token_expiration"


class Renewal(MiddlewareMixin):
    """Sends a browser that opens a page of the console to the provider once its session is due for renewal.

    The answer is a page that leads on, no redirect: after a form, the content policy forbids a redirect to another
    host.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if not opens_page(request) or request.session.get(DUE, float("inf")) > time.time():
            return None
        onward = f"{reverse('admin:sign_on')}?{urlencode({'renew': 1, 'next': request.get_full_path()})}"
        answer = render(request, "console/sign_on_renewal.html", {"onward": onward})
        add_never_cache_headers(answer)
        return answer


def opens_page(request: HttpRequest) -> bool:
    """Whether a browser loads a whole page of the console, not a part of a page, and not a step of the sign-on."""
    is_inside = request.path.startswith("/console/") and not request.path.startswith(reverse("admin:sign_on"))
    is_whole = request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate" and "HX-Request" not in request.headers
    return request.method == "GET" and is_inside and is_whole
