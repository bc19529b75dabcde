"""The Content-Security-Policy of every page: scripts, styles and forms of this origin only, within no other page."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

# Alpine and htmx evaluate the expressions in their attributes; Unfold and Swagger UI set styles in elements.
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
    """Gives each answer of Django's handler the policy, those of failures too."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers["Content-Security-Policy"] = POLICY
        return response
