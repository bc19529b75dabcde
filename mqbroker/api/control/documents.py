"""The API's own documents: the schema, and the page that displays it."""

import threading
from functools import cache

import msgspec
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from mqbroker.api.control.resource import Resource
from mqbroker.rights import MayLook, is_signed_in

# drf-spectacular loads its extensions at the first use, and fails if two threads do so at the same time.
_making = threading.Lock()


def document() -> bytes:
    """The OpenAPI document. It only changes with the code, and takes half a second to generate."""
    with _making:
        return _document()


@cache
def _document() -> bytes:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]  # drf-spectacular has no types
    return msgspec.json.encode(generator.get_schema(request=None, public=True))  # type: ignore[no-untyped-call]  # drf-spectacular has no types


class Schema(Resource):
    permission_classes = (MayLook,)

    @extend_schema(operation_id="schema", tags=["schema"], responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> HttpResponse:
        """Returns the OpenAPI 3.1 document of both planes."""
        return HttpResponse(document(), content_type="application/json")


class Docs(Resource, SpectacularSwaggerSplitView):
    """Swagger UI from the installed package, with its script in a separate file, because the content policy forbids
    inline scripts.

    A browser that is not signed in is redirected to the console's login.
    """

    template_name = "console/docs.html"
    permission_classes = (MayLook,)

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        wants_page = "text/html" in request.headers.get("Accept", "")
        if wants_page and "Authorization" not in request.headers and not is_signed_in(request):
            return redirect_to_login(request.get_full_path())
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return response

    def handle_exception(self, exc: Exception) -> Response:
        # An error of these views is a problem document, not an HTML page.
        self.request.accepted_renderer = JSONRenderer()
        return super().handle_exception(exc)
