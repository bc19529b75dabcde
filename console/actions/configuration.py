"""Actions on the configuration: groups, topics, endpoints, subscriptions, keys and so on, each by its registry."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from access import audit, keys, namespaces
from access.audit import Signature, picture
from access.namespaces import NamespaceNotExist
from console.actions.shapes import Call, Parameters, Run, Stepwise
from delivery import registry as consumer_groups
from delivery.push import registry as subscriptions
from store import registry as topics
from store.db import fields
from store.db.fields import Field
from store.errors import GroupNotExist, MessageIllegal, Refusal, TopicNotExist
from transactions import endpoints
from transactions import registry as producer_groups
from transactions.models import Endpoint

# Changes columns of an object that was found, and returns the changed object.
Change = Callable[[Any, Mapping[str, Any]], object]

# The name of an endpoint as a target is the producer group, this text, and the endpoint's id.
AT = " endpoint "
EMPTY: Mapping[str, object] = {}
NOT_EXIST = (GroupNotExist, TopicNotExist, NamespaceNotExist)


@dataclass(frozen=True)
class Thing:
    """A kind of configured object: its noun, the functions that find and change a target, the name of a change in the
    audit, the columns that describe a target, and the fields that the audit shows.
    """

    noun: str
    find: Callable[[str], Any]
    change: Change
    action: str
    columns: tuple[str, ...]
    picture: Callable[[Any], Mapping[str, object] | None] = picture

    def describe(self, targets: Sequence[str], parameters: Parameters) -> dict[str, str]:
        """Describes targets: a text with the columns of each. A target that does not exist is missing."""
        described = {}
        for target in targets:
            with contextlib.suppress(Refusal):
                found = self.find(target)
                columns = ((column.replace("_", " "), worded(getattr(found, column))) for column in self.columns)
                described[target] = ", ".join(f"{name}: {value}" for name, value in columns)
        return described

    def standing(self, target: str) -> Mapping[str, object]:
        """The current columns of a target. Raises the registry's refusal, for instance for an unknown name."""
        return self.picture(self.find(target)) or {}

    def absent(self, target: str) -> Mapping[str, object]:
        """A target that is still to be created has no columns. Raises MessageIllegal for a name that is in use."""
        with contextlib.suppress(*NOT_EXIST):
            self.require_absent(target, self.find(target))
        return {}

    def require_absent(self, target: str, found: Model | None) -> None:
        """Raises MessageIllegal if an object of this name was found."""
        if found is not None:
            raise MessageIllegal(f"The {self.noun} {target} already exists: change it, or choose another name.")

    def changed(
        self, name: str, title: str, button: str, sets: Mapping[str, object] = EMPTY, *, right: str = "", **more: Any
    ) -> Stepwise:
        """A kind of action that sets columns of its targets to the values in `sets`, or to the action's parameters if
        `sets` is empty. `more`: further fields of Stepwise.
        """
        run = self._run(self.action, lambda found, parameters: self.change(found, sets or parameters))
        standing = self.standing if "fields" in more else None
        more = {"noun": self.noun, "right": right or self.action, "standing": standing, **more}
        return Stepwise(name, title, button, run, self.describe, **more)

    def deleted(self, name: str, title: str, button: str, remove: Callable[[Any], object]) -> Stepwise:
        """A kind of action that deletes its targets."""
        return self.acted(name, title, button, remove, grave=True)

    def acted(
        self, name: str, title: str, button: str, act: Callable[[Any], object], *, grave: bool = False
    ) -> Stepwise:
        """A kind of action that calls `act` on its targets; `act` deletes them or changes none of their columns."""

        def apply(found: Any, _: Parameters) -> None:
            act(found)

        return Stepwise(name, title, button, self._run(name, apply), self.describe, noun=self.noun, grave=grave)

    def made(self, name: str, put: Callable[[str, Parameters], Any], fields: tuple[Field, ...]) -> Stepwise:
        """A kind of action that creates a target, unless the name is in use."""

        def run(targets: Sequence[str], parameters: Parameters, signature: Signature, call: Call) -> None:
            for target in targets:
                with contextlib.suppress(Refusal), audit.change(signature, self.action, target) as change:
                    self.absent(target)
                    change.after = picture(put(target, parameters)[0])

        return Stepwise(
            name,
            f"Make a {self.noun}",
            f"Make a {self.noun}",
            run,
            lambda targets, _: dict.fromkeys(targets, "new"),
            noun=self.noun,
            right=self.action,
            fields=fields,
            makes=True,
            standing=self.absent,
        )

    def _run(self, action: str, apply: Callable[[Any, Parameters], object]) -> Run:
        """Changes each target in a transaction with its audit entry; a refused change has an entry, too."""

        def run(targets: Sequence[str], parameters: Parameters, signature: Signature, call: Call) -> None:
            for target in targets:
                with contextlib.suppress(Refusal), audit.change(signature, action, target) as change:
                    found = self.find(target)
                    change.before = self.picture(found)
                    change.after = self.picture(apply(found, parameters))

        return run


def endpoint(target: str) -> Endpoint:
    """The endpoint that a target names.

    Raises GroupNotExist or EndpointNotExist.
    """
    group, _, number = target.rpartition(AT)
    return endpoints.find(producer_groups.find(group), int(number) if number.isdigit() else 0)


def target_of(found: Endpoint) -> str:
    """The name of an endpoint as a target."""
    return f"{found.group.name}{AT}{found.id}"


def worded(value: object) -> str:
    """A column's value as text for an operator."""
    if value is None:
        return "the default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def put(registry: Any) -> Change:
    """The function of a registry that changes the row with the given name."""
    return lambda found, columns: registry.put(found.name, columns)[0]


TOPIC = Thing("topic", topics.find, put(topics), "topic.put", ("queues", "reserved_hours", "permission", "sends_from"))
PRODUCERS = Thing(
    "producer group",
    producer_groups.find,
    put(producer_groups),
    "producer_group.put",
    ("checks_paused", "reject_transaction_message"),
)
ENDPOINT = Thing("endpoint", endpoint, endpoints.change, "endpoint.change", ("url", "state"))
CONSUMERS = Thing(
    "consumer group",
    consumer_groups.find,
    put(consumer_groups),
    "consumer_group.put",
    ("paused", "ordered", "queue_order", "fair_by", "limits", "start_at"),
)
PUSH = Thing(
    "subscription",
    subscriptions.find,
    put(subscriptions),
    "subscription.change",
    ("group_name", "topic_name", "url", "state", "paused"),
)
NAMESPACE = Thing("namespace", namespaces.find, put(namespaces), "namespace.put", namespaces.LIMIT_NAMES)
KEY = Thing("API key", keys.find, lambda row, columns: keys.change(row.name, columns), "key.change", ("scopes", "hint"))

KINDS = (
    TOPIC.made("topic.make", topics.put, topics.FIELDS),
    TOPIC.changed("topic.change", "Change the topic", "Change", fields=topics.FIELDS),
    TOPIC.deleted("topic.delete", "Delete topics", "Delete", producer_groups.remove_topic),
    PRODUCERS.made("producer_group.make", producer_groups.put, producer_groups.FIELDS),
    PRODUCERS.changed("producer_group.change", "Change the producer group", "Change", fields=producer_groups.FIELDS),
    PRODUCERS.changed(
        "producer_group.pause_checks", "Pause the checks of producer groups", "Pause checks", {"checks_paused": True}
    ),
    PRODUCERS.changed(
        "producer_group.continue_checks",
        "Continue the checks of producer groups",
        "Continue checks",
        {"checks_paused": False},
    ),
    PRODUCERS.deleted(
        "producer_group.delete", "Delete producer groups", "Delete", lambda found: producer_groups.remove(found.name)
    ),
    ENDPOINT.changed("endpoint.change", "Change the calls to the endpoint", "Change", fields=endpoints.PACE),
    ENDPOINT.changed(
        "endpoint.move",
        "Change the URL of the endpoint",
        "Change the URL",
        fields=fields.named(endpoints.FIELDS, "url"),
        right="endpoint.register",
        grave=True,
    ),
    ENDPOINT.changed("endpoint.enable", "Call endpoints again", "Call again"),
    ENDPOINT.deleted("endpoint.delete", "Delete endpoints", "Delete", endpoints.remove),
    CONSUMERS.made("consumer_group.make", consumer_groups.put, consumer_groups.FIELDS),
    CONSUMERS.changed("consumer_group.change", "Change the consumer group", "Change", fields=consumer_groups.FIELDS),
    CONSUMERS.changed("consumer_group.pause", "Pause consumer groups", "Pause", {"paused": True}),
    CONSUMERS.changed("consumer_group.continue", "Continue consumer groups", "Continue", {"paused": False}),
    CONSUMERS.deleted(
        "consumer_group.delete", "Delete consumer groups", "Delete", lambda found: consumer_groups.remove(found.name)
    ),
    PUSH.changed("subscription.change", "Change the calls of the subscription", "Change", fields=subscriptions.PACE),
    PUSH.changed(
        "subscription.move",
        "Change what the subscription pushes where",
        "Change URL and topic",
        fields=subscriptions.AIM,
        right="subscription.put",
        grave=True,
    ),
    PUSH.changed("subscription.enable", "Call subscriptions again", "Call again"),
    PUSH.changed("subscription.pause", "Pause subscriptions", "Pause", {"paused": True}),
    PUSH.changed("subscription.continue", "Continue subscriptions", "Continue", {"paused": False}),
    PUSH.deleted("subscription.delete", "Delete subscriptions", "Delete", subscriptions.remove),
    NAMESPACE.made("namespace.make", namespaces.put, namespaces.FIELDS),
    NAMESPACE.changed("namespace.change", "Change the limits of the namespace", "Change", fields=namespaces.FIELDS),
    NAMESPACE.deleted("namespace.delete", "Delete namespaces", "Delete", namespaces.remove),
    KEY.changed("key.change", "Change the scopes of the API key", "Change", fields=keys.FIELDS),
    KEY.deleted("key.revoke", "Revoke API keys", "Revoke", lambda found: keys.revoke(found.name)),
)
