"""The base of the control plane's views: how bodies and queries are read, and which methods a path has."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NoReturn, TypeVar

from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from access import audit, roles
from access.audit import Change, Signature
from access.callers import Caller
from mqbroker.api import json_bodies
from mqbroker.api.control.openapi import ControlSchema
from mqbroker.api.control.shapes import Given
from store.db import sync
from store.naming.namespaces import Namespace

Row = TypeVar("Row", bound=Model)


class JsonAlways(BaseContentNegotiation):
    """Answers in JSON whatever the Accept header is, as the data plane does."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        only = next(iter(renderers))
        return only, only.media_type


class Resource(APIView):
    """A path of the control plane. `data_plane_methods` are those of the same path that the data plane serves.

    `actions` names what each method that changes something does, as `access.roles` and the audit have it.
    """

    http_method_names = ["get", "head", "post", "put", "delete"]  # noqa: RUF012  # Django declares it so
    content_negotiation_class = JsonAlways
    metadata_class = None
    schema = ControlSchema()
    data_plane_methods: Sequence[str] = ()
    actions: ClassVar[Mapping[str, str]] = {}
    # Whether a key with `manage` that is bound to a namespace may call it, for what the path names.
    in_namespaces: bool = False

    @property
    def _namespace(self) -> Namespace | None:
        """The namespace of the request."""
        found: Namespace | None = getattr(self.request._request, "scope", {}).get("namespace")
        return found

    @property
    def narrowed_to(self) -> str | None:
        """The namespace of the request, which its lists are narrowed to; None: all."""
        asked = self._namespace
        bound = self.request.user.namespace if isinstance(self.request.user, Caller) else None
        return bound or (None if asked is None else asked.name)

    def action_of(self, method: str | None) -> str:
        """What a method does; one without a name is an admin's."""
        return self.actions.get(str(method), "")

    def require(self, action: str) -> None:
        """Raises NoPermission where a console user's role does not allow this; a key with `manage` may do all."""
        if not isinstance(self.request.user, Caller):
            roles.require(self.request.user, action)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
            return response
        finally:
            # Django gives it back to the pool once the answer was sent: a caller that reads slowly would keep it.
            sync.give_connection_back()

    def recorded(self, target: str) -> AbstractContextManager[Change]:
        """A block that changes what this method changes, with its entry in the audit, in one database transaction.

        What the answer shows is read in it, too: behind its commit a failure would lose the answer, not the change.
        """
        return audit.change(signature_of(self.request), self.action_of(self.request.method), target)

    def removed(self, target: str, find: Callable[[], Row], remove: Callable[[Row], object]) -> Response:
        """The answer once what is found was deleted, with its entry."""
        with self.recorded(target) as change:
            row = find()
            change.before = audit.picture(row)
            remove(row)
        return Response(status=204)

    def standing(self, find: Callable[[str], Row | None], name: str) -> Row | None:
        """What stands under a name before a change. A name with a NUL is refused by what follows."""
        return None if "\0" in name else find(name)

    @property
    def allowed_methods(self) -> list[str]:
        return sorted({*super().allowed_methods, *self.data_plane_methods})

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> NoReturn:
        raise MethodNotAllowed(
            str(request.method),
            f"{request.path} has no method {request.method}: it has {', '.join(self.allowed_methods)}.",
        )

    def body(self, shape: type[Given]) -> dict[str, Any]:
        """The request's body as the fields of a shape; no body is an empty object.

        Raises BadRequest when it is no JSON, or MessageIllegal, which names what breaks a rule.
        """
        # Not `request.data`: that takes a body that came in chunks, without a length, for none.
        body: bytes = self.request.read()
        given = json_bodies.decode(object, body) if body else {}
        return validated(shape(data=given if self._namespace is None else self._namespace.wrap_names(given)))

    def query(self, shape: type[Given]) -> dict[str, Any]:
        """The query as the fields of a shape, the last of several of one name.

        Raises MessageIllegal, which names a parameter that is unknown or breaks a rule.
        """
        return validated(shape(data=self.request.query_params.dict()))


def require_produce(request: Request, topics: Iterable[str]) -> None:
    """Raises NoPermission unless the caller's key may send to each of these topics, or patterns of topics, itself.

    For what the broker sends in an operator's name: a key that only manages would send by it what it may not send. A
    pattern is asked for as a name: only a scope whose `*` covers the pattern's allows it.
    """
    if isinstance(request.user, Caller):
        for topic in topics:
            request.user.require("produce", topic)


def signature_of(request: Request) -> Signature:
    """Who changes something by this request, for the audit."""
    request_id = getattr(request._request, "scope", {}).get("request_id")
    if isinstance(request.user, Caller):
        return Signature("key", request.user.name, request_id)
    return Signature("user", request.user.get_username(), request_id)


def validated(shape: Given) -> dict[str, Any]:
    """The fields of a shape that obeys every rule."""
    shape.is_valid(raise_exception=True)
    fields: dict[str, Any] = shape.validated_data
    return fields
