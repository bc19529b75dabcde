"""Endpoints: the URLs at which producer groups answer checks."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from access.audit import picture
from mqbroker.api.control import lists
from mqbroker.api.control.fields import Choice, Number, Switch, Text, Time, Whole
from mqbroker.api.control.lists import PageQuery
from mqbroker.api.control.resource import Resource
from mqbroker.api.control.shapes import Given, Registered, Shape
from store.reading import cursors
from transactions import endpoints, registry
from transactions import models as transactions
from transactions.checks import trials

STATES = ("healthy", "open", "half_open", "disabled")


class SecretGiven(Given):
    """The request to set a new secret of an endpoint."""

    secret = Text(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=200,
        help_text="`whsec_` and the base64 of 24 to 64 bytes. If it is left out, the broker makes one.",
    )


class EndpointSettings(SecretGiven):
    """The settings of an endpoint. A field that is left out keeps its value."""

    settings = Registered(endpoints.FIELDS)


class NewEndpoint(SecretGiven):
    """The request to register an endpoint. A field that is left out gets its default."""

    settings = Registered(endpoints.FIELDS, makes=True)


class SecretShown(Shape):
    """The secret of an endpoint that was just created or changed."""

    secret = serializers.CharField(
        required=False,
        help_text="Only in the answer to the request that created or contained the secret; it is not shown again.",
    )


class Endpoint(Shape):
    """An endpoint, with the results of recent calls to it."""

    id = Whole()
    producer_group = serializers.CharField(source="group.name")
    settings = Registered(endpoints.FIELDS, answers=True)
    state = Choice(
        "EndpointState",
        STATES,
        help_text="open: not called before `open_until`; disabled: not called until the endpoint is changed.",
    )
    failures = Whole(help_text="Failures in a row.")
    open_until = Time(allow_null=True)
    last_failure = serializers.CharField(allow_null=True)
    last_failure_at = Time(allow_null=True)
    last_success_at = Time(allow_null=True)
    last_answer = serializers.CharField(
        allow_null=True, help_text="The answer to the last call that was answered 2xx; at most 10 s old."
    )
    last_answer_at = Time(allow_null=True)
    void_answers = Whole(help_text="Calls in a row that were answered 2xx and decided nothing; at most 10 s old.")
    void_since = Time(allow_null=True)
    rotated_at = Time(allow_null=True, help_text="When its secret was last changed.")
    created_at = Time()


class EndpointSet(Endpoint, SecretShown):
    """An endpoint that was just created or changed."""


class Trial(Shape):
    """The outcome of a trial. `ok`: the broker would understand the same answer to a check."""

    ok = Switch()
    outcome = Choice(
        "CallOutcome", ("answered", "timeout", "refused", "forbidden_address", "too_large", "tls", "protocol")
    )
    status = Whole(allow_null=True)
    latency_ms = Number()
    reason = serializers.CharField()


def document(endpoint: transactions.Endpoint, *, with_secret: bool) -> dict[str, object]:
    """The document of an endpoint. It contains the secret only in the answer to the request that set it."""
    fields: dict[str, object] = (EndpointSet if with_secret else Endpoint)(endpoint).data
    return fields


class EndpointList(Resource):
    in_namespaces = True
    actions: ClassVar = {"POST": "endpoint.register"}

    @extend_schema(operation_id="list_endpoints", parameters=[PageQuery], responses=lists.page_of(Endpoint))
    def get(self, request: Request, group: str) -> Response:
        """Lists a group's endpoints in the order of their registration."""
        page = self.query(PageQuery)
        after = cursors.decode(page["cursor"], int) or 0
        rows = endpoints.page(registry.find(group), after, page["limit"] + 1)
        return lists.answer(Endpoint, rows, page["limit"], lambda endpoint: endpoint.id)

    @extend_schema(
        operation_id="register_endpoint", request=NewEndpoint, responses={200: EndpointSet, 201: EndpointSet}
    )
    def post(self, request: Request, group: str) -> Response:
        """Registers an endpoint and shows its secret, once.

        If the group already has an endpoint at this URL, changes that endpoint as PUT does, so that a producer may
        register at each start. Then the answer is 200, and shows a secret only if the request contained one.
        """
        given = self.body(NewEndpoint)
        with self.recorded(f"{group} {given['url']}") as change:
            endpoint, made = endpoints.register(registry.find(group), given)
            change.after = picture(endpoint)
            answer = document(endpoint, with_secret=made or given.get("secret") is not None)
        return Response(answer, status=201 if made else 200)


class EndpointDetail(Resource):
    in_namespaces = True
    actions: ClassVar = {"PUT": "endpoint.change", "DELETE": "endpoint.delete"}

    @extend_schema(operation_id="get_endpoint", responses=Endpoint)
    def get(self, request: Request, group: str, endpoint_id: int) -> Response:
        """Shows an endpoint without its secret."""
        return Response(document(endpoints.find(registry.find(group), endpoint_id), with_secret=False))

    @extend_schema(operation_id="put_endpoint", request=EndpointSettings, responses=EndpointSet)
    def put(self, request: Request, group: str, endpoint_id: int) -> Response:
        """Changes the given fields of an endpoint, and makes it healthy again; this ends the state `disabled`.

        A secret in the request replaces the former secret like `rotate-secret`; only then the answer shows it.
        """
        given = self.body(EndpointSettings)
        if {"url", "secret"} & given.keys():
            self.require("endpoint.register")
        with self.recorded(f"{group} endpoint {endpoint_id}") as change:
            found = endpoints.find(registry.find(group), endpoint_id)
            change.before = picture(found)
            endpoint = endpoints.change(found, given)
            change.after = picture(endpoint)
            answer = document(endpoint, with_secret=given.get("secret") is not None)
        return Response(answer)

    @extend_schema(operation_id="delete_endpoint", responses={204: None})
    def delete(self, request: Request, group: str, endpoint_id: int) -> Response:
        """Deletes an endpoint; half messages that named it are checked at the group's other endpoints."""
        target = f"{group} endpoint {endpoint_id}"
        return self.removed(target, lambda: endpoints.find(registry.find(group), endpoint_id), endpoints.remove)


class EndpointSecret(Resource):
    in_namespaces = True
    actions: ClassVar = {"POST": "endpoint.rotate_secret"}

    @extend_schema(operation_id="rotate_secret", request=SecretGiven, responses=EndpointSet)
    def post(self, request: Request, group: str, endpoint_id: int) -> Response:
        """Gives an endpoint a new secret and shows it, once. For a day calls are also signed with the old secret."""
        given = self.body(SecretGiven)
        with self.recorded(f"{group} endpoint {endpoint_id}") as change:
            found = endpoints.find(registry.find(group), endpoint_id)
            change.before = picture(found)
            endpoint = endpoints.rotate_secret(found, given.get("secret"))
            change.after, answer = picture(endpoint), document(endpoint, with_secret=True)
        return Response(answer)


class EndpointTrial(Resource):
    in_namespaces = True
    actions: ClassVar = {"POST": "endpoint.test"}

    @extend_schema(operation_id="test_endpoint", request=None, responses=Trial)
    def post(self, request: Request, group: str, endpoint_id: int) -> Response:
        """Sends a signed check about no transaction and answers with the outcome. Changes nothing.

        The endpoint gets `{"type": "transaction.check", "producer_group": …, "transactions": []}`.
        """
        return Response(Trial(trials.ask(endpoints.find(registry.find(group), endpoint_id))).data)
