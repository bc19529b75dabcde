"""Actions on what is configured: groups, topics, endpoints, subscriptions and keys, each by its registry."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Model

from access import audit, keys
from access.audit import Signature, picture
from actions.shapes import Call, Describe, Parameters, Run
from delivery import registry as consumer_groups_registry
from delivery.push import registry as subscriptions_registry
from store import registry as topics_registry
from store.errors import GroupNotExist, MessageIllegal, Refusal, TopicNotExist
from transactions import endpoints
from transactions import registry as producer_groups_registry
from transactions.models import Endpoint

Find = Callable[[str], Model]
# Changes what was found, and returns what is there afterwards; None: nothing is.
Apply = Callable[[Any, Parameters], Model | None]
# The columns of what a target names, before it is changed. Raises what its registry refuses.
Standing = Callable[[str], Mapping[str, object]]

# Between a producer group and the id of its endpoint, in the name of a target.
ENDPOINT = " endpoint "
NOT_EXIST = (GroupNotExist, TopicNotExist)


def endpoint(target: str) -> Endpoint:
    """The endpoint that a target names.

    Raises GroupNotExist or EndpointNotExist.
    """
    group, _, number = target.rpartition(ENDPOINT)
    return endpoints.find(producer_groups_registry.find(group), int(number) if number.isdigit() else 0)


def target_of(found: Endpoint) -> str:
    """What names an endpoint as a target."""
    return f"{found.group.name}{ENDPOINT}{found.id}"


def changing(action: str, find: Find, apply: Apply) -> Run:
    """Changes each target in a transaction with its entry; what is refused has an entry, too."""

    def run(targets: Sequence[str], parameters: Parameters, signature: Signature, call: Call) -> None:
        for target in targets:
            with contextlib.suppress(Refusal), audit.change(signature, action, target) as change:
                found = find(target)
                change.before = picture(found)
                change.after = picture(apply(found, parameters))

    return run


def described(find: Find, *fields: str) -> Describe:
    """Says of each target what these fields hold; one that does not exist is missing."""

    def describe(targets: Sequence[str], parameters: Parameters) -> dict[str, str]:
        words = {}
        for target in targets:
            with contextlib.suppress(Refusal):
                found = find(target)
                columns = ((field.replace("_", " "), worded(getattr(found, field))) for field in fields)
                words[target] = ", ".join(f"{name}: {value}" for name, value in columns)
        return words

    return describe


def worded(value: object) -> str:
    """A column as an operator reads it."""
    if value is None:
        return "the default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def standing(find: Find) -> Standing:
    """What is changed, as it stands."""
    return lambda target: picture(find(target)) or {}


def absent(registry: Any, what: str) -> Standing:
    """What is made has no columns yet. Raises MessageIllegal for a name that is in use."""

    def stands(target: str) -> Mapping[str, object]:
        with contextlib.suppress(*NOT_EXIST):
            registry.find(target)
            raise MessageIllegal(f"There is a {what} {target} already: change that one, or take another name.")
        return {}

    return stands


def making(action: str, registry: Any, what: str) -> Run:
    """Makes each target, unless its name is in use."""

    def run(targets: Sequence[str], parameters: Parameters, signature: Signature, call: Call) -> None:
        for target in targets:
            with contextlib.suppress(Refusal), audit.change(signature, action, target) as change:
                absent(registry, what)(target)
                change.after = picture(registry.put(target, parameters)[0])

    return run


def removing(remove: Callable[[Any], None]) -> Apply:
    """A change after which nothing is there."""

    def apply(found: Any, parameters: Parameters) -> None:
        remove(found)

    return apply


def put(registry: Any, **changes: Any) -> Apply:
    """A change of these fields, or else of those that the parameters give."""
    return lambda found, parameters: registry.put(found.name, changes or parameters)[0]


def by_name(registry: Any) -> Apply:
    """Deletes what a registry finds by its name."""
    return removing(lambda found: registry.remove(found.name))


def remove_topic(topic: Any) -> None:
    """Deletes a topic that no undecided transaction writes to."""
    producer_groups_registry.require_topic_unused(topic)
    topics_registry.remove(topic)


def change_key(found: Any, parameters: Parameters) -> Model:
    """Changes the scopes, the limits and the expiry of a key."""
    given = {name: value for name, value in parameters.items() if name != "expires_at"}
    if "expires_at" in parameters:
        until = parameters["expires_at"]
        given["expires_at"] = None if until is None else datetime.fromisoformat(until)
    keys.validate(found.name, given.get("scopes", found.scopes))
    return keys.change(found.name, given)


def change_endpoint(found: Any, parameters: Parameters) -> Model:
    """Changes an endpoint, and makes it healthy again."""
    return endpoints.change(found, parameters)


topics = described(topics_registry.find, "queues", "reserved_hours", "permission")
producer_groups = described(producer_groups_registry.find, "checks_paused", "reject_transaction_message")
consumer_groups = described(consumer_groups_registry.find, "paused", "ordered", "start_at")
subscriptions = described(subscriptions_registry.find, "group_name", "topic_name", "url", "state", "paused")
group_endpoints = described(endpoint, "url", "state")
api_keys = described(keys.find, "scopes", "hint")


class Change(NamedTuple):
    """A change of what a registry holds: its name, its action in the audit, how a target is found, changed and
    described. `role` is the action whose role it needs, where that is another. `is_setting`: of columns that are given.
    """

    name: str
    action: str
    find: Find
    apply: Apply
    describe: Describe
    role: str = ""
    is_setting: bool = False

    @property
    def run(self) -> Run:
        """What does it."""
        return changing(self.action, self.find, self.apply)


class Making(NamedTuple):
    """Makes what a registry keeps under a name: `what` it is, for sentences."""

    name: str
    action: str
    registry: Any
    what: str


_TOPICS, _PRODUCERS, _CONSUMERS = topics_registry, producer_groups_registry, consumer_groups_registry
_PUSH = subscriptions_registry
_CHECKS_PAUSED, _CHECKS_ON = put(_PRODUCERS, checks_paused=True), put(_PRODUCERS, checks_paused=False)

MAKES = (
    Making("topic.make", "topic.put", _TOPICS, "topic"),
    Making("producer_group.make", "producer_group.put", _PRODUCERS, "producer group"),
    Making("consumer_group.make", "consumer_group.put", _CONSUMERS, "consumer group"),
)
CHANGES = (
    Change("topic.change", "topic.put", _TOPICS.find, put(_TOPICS), topics, is_setting=True),
    Change("topic.delete", "topic.delete", _TOPICS.find, removing(remove_topic), topics),
    Change("producer_group.change", "producer_group.put", _PRODUCERS.find, put(_PRODUCERS), producer_groups, "", True),
    Change("producer_group.pause_checks", "producer_group.put", _PRODUCERS.find, _CHECKS_PAUSED, producer_groups),
    Change("producer_group.continue_checks", "producer_group.put", _PRODUCERS.find, _CHECKS_ON, producer_groups),
    Change("producer_group.delete", "producer_group.delete", _PRODUCERS.find, by_name(_PRODUCERS), producer_groups),
    Change("endpoint.change", "endpoint.change", endpoint, change_endpoint, group_endpoints, "", True),
    Change("endpoint.move", "endpoint.change", endpoint, change_endpoint, group_endpoints, "endpoint.register", True),
    Change("endpoint.enable", "endpoint.change", endpoint, change_endpoint, group_endpoints),
    Change("endpoint.delete", "endpoint.delete", endpoint, removing(endpoints.remove), group_endpoints),
    Change("consumer_group.change", "consumer_group.put", _CONSUMERS.find, put(_CONSUMERS), consumer_groups, "", True),
    Change(
        "consumer_group.pause", "consumer_group.put", _CONSUMERS.find, put(_CONSUMERS, paused=True), consumer_groups
    ),
    Change(
        "consumer_group.continue", "consumer_group.put", _CONSUMERS.find, put(_CONSUMERS, paused=False), consumer_groups
    ),
    Change("consumer_group.delete", "consumer_group.delete", _CONSUMERS.find, by_name(_CONSUMERS), consumer_groups),
    Change("subscription.change", "subscription.change", _PUSH.find, put(_PUSH), subscriptions, "", True),
    Change("subscription.move", "subscription.change", _PUSH.find, put(_PUSH), subscriptions, "subscription.put", True),
    Change("subscription.enable", "subscription.change", _PUSH.find, put(_PUSH), subscriptions),
    Change("subscription.pause", "subscription.change", _PUSH.find, put(_PUSH, paused=True), subscriptions),
    Change("subscription.continue", "subscription.change", _PUSH.find, put(_PUSH, paused=False), subscriptions),
    Change("subscription.delete", "subscription.delete", _PUSH.find, removing(_PUSH.remove), subscriptions),
    Change("key.change", "key.change", keys.find, change_key, api_keys, "", True),
    Change("key.revoke", "key.revoke", keys.find, removing(lambda found: keys.revoke(found.name)), api_keys),
)
