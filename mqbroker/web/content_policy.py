"""The Content-Security-Policy of every page: scripts, styles and forms of this origin only, and no framing by other
pages.
"""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

# Alpine and htmx evaluate expressions in attributes; Unfold and Swagger UI set styles in elements.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    )
)


class ContentPolicy(MiddlewareMixin):
    """Adds the policy to each answer of Django's handler, including errors."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers["Content-Security-Policy"] = POLICY
        return response
