"""Subscriptions: the servers to which the broker pushes a group's messages, and the results of these pushes."""

from collections.abc import Mapping
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from access.audit import picture
from access.callers import Caller
from delivery import models as delivery
from delivery.push import registry
from mqbroker.api.control import lists
from mqbroker.api.control.endpoints import STATES, SecretGiven, SecretShown
from mqbroker.api.control.fields import Choice, Time, Whole
from mqbroker.api.control.lists import PageQuery
from mqbroker.api.control.resource import Resource
from mqbroker.api.control.shapes import Registered, Shape
from mqbroker.rights import MaySubscribe

# Fields whose change affects neither the server nor the messages of pushes.
PACE = {"paused", *(one.column for one in registry.PACE)}


class SubscriptionSettings(SecretGiven):
    """The settings of a subscription.

    A field that is left out keeps its value; a new one needs `group`, `topic` and `url`.
    """

    settings = Registered(registry.FIELDS)


class SubscriptionSummary(Shape):
    """A subscription, with the results of recent calls to its server."""

    name = serializers.CharField()
    settings = Registered(registry.FIELDS, answers=True)
    state = Choice(
        "SubscriptionState",
        STATES,
        help_text="open: not called before `open_until`; disabled: not called until it is changed, because its server "
        "answered 410 or failed for five days.",
    )
    failures = Whole(help_text="Failures in a row.")
    open_until = Time(allow_null=True)
    failing_since = Time(allow_null=True, help_text="The first failure since the last success.")
    last_failure = serializers.CharField(allow_null=True)
    last_failure_at = Time(allow_null=True)
    last_success_at = Time(allow_null=True, help_text="At most 10 s old.")
    rotated_at = Time(allow_null=True, help_text="When its secret was last changed.")
    created_at = Time()


class Subscription(SubscriptionSummary):
    """A subscription with the number of messages still to be pushed."""

    lag = Whole(help_text="Entries of the topic that the group was not handed yet, and its retries of such entries.")


class SubscriptionSet(Subscription, SecretShown):
    """A subscription that was just created or changed."""


def document(row: delivery.Subscription, *, with_secret: bool = False) -> dict[str, object]:
    """The document of a subscription with its lag.

    It contains the secret only in the answer to the request that set it.
    """
    fields = {**SubscriptionSummary(row).data, "lag": registry.lag(row)}
    return {**fields, "secret": row.secret} if with_secret else fields


class SubscriptionList(Resource):
    in_namespaces = True

    @extend_schema(
        operation_id="list_subscriptions", parameters=[PageQuery], responses=lists.page_of(SubscriptionSummary)
    )
    def get(self, request: Request) -> Response:
        """Subscriptions by name."""
        return lists.by_name(SubscriptionSummary, self.query(PageQuery), registry.page, self.narrowed_to)


def found(request: Request, name: str) -> delivery.Subscription:
    """The subscription with this name, for a caller that may manage, or receive the messages that it pushes.

    Raises the errors of `registry.find`; any other caller gets the error for an unknown name, and so cannot find out
    names.
    """
    row = registry.find(name)
    caller = request.user
    if (
        isinstance(caller, Caller)
        and not caller.may_manage_names(row.name)
        and not caller.may_receive(row.group_name, row.topic_name)
    ):
        raise registry.absent(name)
    return row


def require_receive(request: Request, name: str, given: Mapping[str, Any]) -> None:
    """Raises NoPermission unless the key may receive the messages that the subscription pushes, before and after the
    change.

    A key that may only manage could otherwise send the messages to a server of its choice.
    """
    _require_receive(request, registry.named(name), given)


def received(request: Request, name: str) -> delivery.Subscription:
    """The result of `found`, for a caller that may receive the subscription's messages.

    Raises NoPermission for a key that only has `manage`: such a key may not change a subscription, so it may neither
    delete it nor rotate its secret.
    """
    row = found(request, name)
    _require_receive(request, row, {})
    return row


def _require_receive(request: Request, row: delivery.Subscription | None, given: Mapping[str, Any]) -> None:
    if not isinstance(request.user, Caller):
        return
    before = {} if row is None else {"group_name": row.group_name, "topic_name": row.topic_name}
    for fields in (before, {**before, **given}):
        if "group_name" in fields:
            request.user.require("consume", fields["group_name"])
        if "topic_name" in fields:
            request.user.require("read", fields["topic_name"])


class SubscriptionDetail(Resource):
    in_namespaces = True
    actions: ClassVar = {"PUT": "subscription.change", "DELETE": "subscription.delete"}
    permission_classes = (MaySubscribe,)

    @extend_schema(operation_id="get_subscription", responses=Subscription)
    def get(self, request: Request, name: str) -> Response:
        """Shows a subscription without its secret."""
        return Response(document(found(request, name)))

    @extend_schema(
        operation_id="put_subscription",
        request=SubscriptionSettings,
        responses={200: SubscriptionSet, 201: SubscriptionSet},
    )
    def put(self, request: Request, name: str) -> Response:
        """Creates a subscription, or changes the given fields and makes it healthy again; this ends the state
        `disabled`.

        The broker then POSTs `{"type": "messages.deliver", "subscription", "group", "topic", "messages": [entry]}`,
        signed. An empty 204 acks all messages; 200 with `{"results": [{"message_id", "status": "ack"|"nack",
        "delay_seconds"?}]}` acks or nacks each one, and nacks messages that are left out; any other answer nacks all.
        Nacked messages are delivered again as after a `nack`. A call that reached no server does not count as an
        attempt.

        The answer shows the secret of a new subscription, once. A `secret` in a later request replaces the old secret
        as `rotate-secret` does, and the answer shows the new secret. Without a `secret` in the request, the answer to a
        change shows none. Calls that are running during a change are finished.
        """
        given = self.body(SubscriptionSettings)
        if given.keys() - PACE:
            self.require("subscription.put")
        require_receive(request, name, given)
        with self.recorded(name) as change:
            change.before = picture(self.standing(registry.named, name))
            row, made = registry.put(name, given)
            change.after = picture(row)
            answer = document(row, with_secret=made or given.get("secret") is not None)
        return Response(answer, status=201 if made else 200)

    @extend_schema(operation_id="delete_subscription", responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Deletes a subscription. Its group stays, with its progress and its dead letters."""
        return self.removed(name, lambda: received(request, name), registry.remove)


class SubscriptionSecret(Resource):
    in_namespaces = True
    actions: ClassVar = {"POST": "subscription.rotate_secret"}
    permission_classes = (MaySubscribe,)

    @extend_schema(operation_id="rotate_subscription_secret", request=SecretGiven, responses=SubscriptionSet)
    def post(self, request: Request, name: str) -> Response:
        """Gives a subscription a new secret and shows it, once. For a day calls are also signed with the old secret."""
        given = self.body(SecretGiven)
        with self.recorded(name) as change:
            existing = received(request, name)
            change.before = picture(existing)
            row = registry.rotate_secret(existing, given.get("secret"))
            change.after, answer = picture(row), document(row, with_secret=True)
        return Response(answer)
