"""Subscriptions: where the broker pushes a group's messages, and how that goes."""

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

# What changes neither where messages are pushed to nor which.
PACE = {"paused", *(one.column for one in registry.PACE)}


class SubscriptionSettings(SecretGiven):
    """What is set of a subscription. What is left out stays as it is; a new one needs `group`, `topic` and `url`."""

    settings = Registered(registry.FIELDS)


class SubscriptionSummary(Shape):
    """A subscription, and how calling its server has gone lately."""

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
    last_success_at = Time(allow_null=True, help_text="To within 10 s.")
    rotated_at = Time(allow_null=True, help_text="When its secret was last changed.")
    created_at = Time()


class Subscription(SubscriptionSummary):
    """A subscription with what is still to be pushed."""

    lag = Whole(help_text="Entries that the group was not handed yet: of the topic, and its retries of them.")


class SubscriptionSet(Subscription, SecretShown):
    """A subscription that was just made or changed."""


def document(row: delivery.Subscription, *, with_secret: bool = False) -> dict[str, object]:
    """A subscription with its lag, and with its secret only in the answer to the request that set it."""
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
    """The subscription of this name, for a caller that may manage, or receive what it pushes.

    Raises what `registry.find` raises, for another caller too: it does not learn which names there are.
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
    """Raises NoPermission unless the key may receive what the subscription pushes, before and after the change.

    A key that only manages may not: the messages would go to a server of its choice.
    """
    _require_receive(request, registry.named(name), given)


def received(request: Request, name: str) -> delivery.Subscription:
    """As `found`, for a caller that may receive what the subscription pushes. Raises NoPermission for one that only
    manages: what may not change a subscription may not end it, or sign its calls, either.
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
        """A subscription, without its secret."""
        return Response(document(found(request, name)))

    @extend_schema(
        operation_id="put_subscription",
        request=SubscriptionSettings,
        responses={200: SubscriptionSet, 201: SubscriptionSet},
    )
    def put(self, request: Request, name: str) -> Response:
        """Makes a subscription, or changes what is given of it and makes it healthy again: the way out of `disabled`.

        The broker then POSTs `{"type": "messages.deliver", "subscription", "group", "topic", "messages": [entry]}`,
        signed. An empty 204 acks them all; 200 with `{"results": [{"message_id", "status": "ack"|"nack",
        "delay_seconds"?}]}` says it of each, and a message that is left out is nacked; whatever else comes nacks them
        all. Nacked messages come again as after a `nack`. A call that reached no server counts as no attempt.

        A new subscription's secret is shown here, once. A secret that is given later replaces the one before as
        `rotate-secret` does; only then the answer shows it. Calls that are under way at a change are finished.
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
        """Takes a subscription away. Its group stays, with its progress and its dead letters."""
        return self.removed(name, lambda: received(request, name), registry.remove)


class SubscriptionSecret(Resource):
    in_namespaces = True
    actions: ClassVar = {"POST": "subscription.rotate_secret"}
    permission_classes = (MaySubscribe,)

    @extend_schema(operation_id="rotate_subscription_secret", request=SecretGiven, responses=SubscriptionSet)
    def post(self, request: Request, name: str) -> Response:
        """Gives a subscription a new secret and shows it, once. For a day calls are signed with the old one too."""
        given = self.body(SecretGiven)
        with self.recorded(name) as change:
            existing = received(request, name)
            change.before = picture(existing)
            row = registry.rotate_secret(existing, given.get("secret"))
            change.after, answer = picture(row), document(row, with_secret=True)
        return Response(answer)
