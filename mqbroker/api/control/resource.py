"""The base class of the control plane's views: reads bodies and queries, and says which methods a path has."""

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
    """Answers in JSON whatever the Accept header says, as the data plane does."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        only = next(iter(renderers))
        return only, only.media_type


class Resource(APIView):
    """A path of the control plane. `data_plane_methods` are methods of this path that the data plane serves.

    `actions` gives the name of each changing method's action, as in `access.roles` and the audit.
    """

    http_method_names = ["get", "head", "post", "put", "delete"]  # noqa: RUF012  # a list on the class, as Django declares it
    content_negotiation_class = JsonAlways
    metadata_class = None
    schema = ControlSchema()
    data_plane_methods: Sequence[str] = ()
    actions: ClassVar[Mapping[str, str]] = {}
    # Whether a key with `manage` that is bound to a namespace may call this path, for names within its namespace.
    in_namespaces: bool = False

    @property
    def _namespace(self) -> Namespace | None:
        """The namespace of the request."""
        found: Namespace | None = getattr(self.request._request, "scope", {}).get("namespace")
        return found

    @property
    def narrowed_to(self) -> str | None:
        """The name of the request's namespace, to which lists are limited; None for all."""
        asked = self._namespace
        bound = self.request.user.namespace if isinstance(self.request.user, Caller) else None
        return bound or (None if asked is None else asked.name)

    def action_of(self, method: str | None) -> str:
        """The action of a method; a method without a named action is allowed only for admins."""
        return self.actions.get(str(method), "")

    def require(self, action: str) -> None:
        """Raises NoPermission if a console user's role does not allow the action; a key with `manage` may do
        everything.
        """
        if not isinstance(self.request.user, Caller):
            roles.require(self.request.user, action)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
            return response
        finally:
            # The connection is given back here: Django would keep it until the answer is sent, which a slow reader
            # could delay.
            sync.give_connection_back()

    def recorded(self, target: str) -> AbstractContextManager[Change]:
        """A block that makes this method's change together with its audit entry, in one database transaction.

        The block also reads what the answer shows: after the commit, a failed read would lose the answer but not the
        change.
        """
        return audit.change(signature_of(self.request), self.action_of(self.request.method), target)

    def kept(
        self,
        name: str,
        find: Callable[[str], Row | None],
        put: Callable[[], tuple[Row, bool]],
        document: Callable[[Row], object],
    ) -> Response:
        """Creates or changes the object with this name by `put`, and writes the audit entry.

        Returns the answer with the object's document.
        """
        with self.recorded(name) as change:
            change.before = audit.picture(self.standing(find, name))
            row, made = put()
            change.after, answer = audit.picture(row), document(row)
        return Response(answer, status=201 if made else 200)

    def removed(self, target: str, find: Callable[[], Row], remove: Callable[[Row], object]) -> Response:
        """Deletes the object that `find` returns, and writes the audit entry. Returns the answer."""
        with self.recorded(target) as change:
            row = find()
            change.before = audit.picture(row)
            remove(row)
        return Response(status=204)

    def standing(self, find: Callable[[str], Row | None], name: str) -> Row | None:
        """The object with this name before a change; None if there is none.

        For a name with a NUL returns None, because the change itself refuses it.
        """
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
        """The request's body as the fields of a shape; a missing body counts as an empty object.

        Raises BadRequest if the body is not JSON, or MessageIllegal, which names the field that breaks a rule.
        """
        # `request.data` cannot be used: it takes a chunked body without a length for an empty body.
        body: bytes = self.request.read()
        given = json_bodies.decode(object, body) if body else {}
        return validated(shape(data=given if self._namespace is None else self._namespace.wrap_names(given)))

    def query(self, shape: type[Given]) -> dict[str, Any]:
        """The query as the fields of a shape. If a parameter occurs several times, the last one counts.

        Raises MessageIllegal, which names the parameter that is unknown or breaks a rule.
        """
        return validated(shape(data=self.request.query_params.dict()))


def require_produce(request: Request, topics: Iterable[str]) -> None:
    """Raises NoPermission unless the caller's key may itself send to each of these topics or topic patterns.

    Used for messages that the broker sends for an operator: otherwise a key that may only manage could send in this
    way. A pattern is checked like a name: only a scope whose `*` covers the pattern allows it.
    """
    if isinstance(request.user, Caller):
        for topic in topics:
            request.user.require("produce", topic)


def signature_of(request: Request) -> Signature:
    """The author of the change that this request makes, for the audit."""
    request_id = getattr(request._request, "scope", {}).get("request_id")
    if isinstance(request.user, Caller):
        return Signature("key", request.user.name, request_id)
    return Signature("user", request.user.get_username(), request_id)


def validated(shape: Given) -> dict[str, Any]:
    """The validated fields of a shape. Raises MessageIllegal if a field breaks a rule."""
    shape.is_valid(raise_exception=True)
    fields: dict[str, Any] = shape.validated_data
    return fields
