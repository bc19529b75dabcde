"""Actions on what is configured: groups, topics, endpoints, subscriptions and keys, each by its registry."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db.models import Model

from access import audit, keys
from access.audit import Signature, picture
from delivery import registry as consumer_groups_registry
from delivery.push import registry as subscriptions_registry
from store import registry as topics_registry
from store.errors import Refusal
from transactions import endpoints
from transactions import registry as producer_groups_registry
from transactions.models import Endpoint

Parameters = Mapping[str, Any]
Find = Callable[[str], Model]
# Changes what was found, and gives what is there afterwards; None: nothing is.
Apply = Callable[[Any, Parameters], Model | None]
Run = Callable[[Sequence[str], Parameters, Signature, Any], None]
Describe = Callable[[Sequence[str]], dict[str, str]]

# Between a producer group and the id of its endpoint, in the name of a target.
ENDPOINT = " endpoint "


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

    def run(targets: Sequence[str], parameters: Parameters, signature: Signature, call: Any) -> None:
        for target in targets:
            with contextlib.suppress(Refusal), audit.change(signature, action, target) as change:
                found = find(target)
                change.before = picture(found)
                change.after = picture(apply(found, parameters))

    return run


def described(find: Find, *fields: str) -> Describe:
    """Says of each target what these fields hold; one that does not exist is missing."""

    def describe(targets: Sequence[str]) -> dict[str, str]:
        words = {}
        for target in targets:
            with contextlib.suppress(Refusal):
                found = find(target)
                words[target] = ", ".join(f"{field.replace('_', ' ')}: {getattr(found, field)}" for field in fields)
        return words

    return describe


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


topics = described(topics_registry.find, "queues", "reserved_hours", "permission")
producer_groups = described(producer_groups_registry.find, "checks_paused", "reject_transaction_message")
consumer_groups = described(consumer_groups_registry.find, "paused", "ordered", "start_at")
subscriptions = described(subscriptions_registry.find, "group_name", "topic_name", "url", "state", "paused")
group_endpoints = described(endpoint, "url", "state")
api_keys = described(keys.find, "scopes", "hint")


_PRODUCERS, _CONSUMERS, _PUSH = producer_groups_registry, consumer_groups_registry, subscriptions_registry
_CHECKS_PAUSED, _CHECKS_ON = put(_PRODUCERS, checks_paused=True), put(_PRODUCERS, checks_paused=False)

# Kinds of a registry: name, action, registry or what finds a target, what is done with it, and its words.
_KINDS: tuple[tuple[str, str, Find, Apply, Describe], ...] = (
    ("topic.change", "topic.put", topics_registry.find, put(topics_registry), topics),
    ("topic.delete", "topic.delete", topics_registry.find, removing(remove_topic), topics),
    ("producer_group.pause_checks", "producer_group.put", _PRODUCERS.find, _CHECKS_PAUSED, producer_groups),
    ("producer_group.continue_checks", "producer_group.put", _PRODUCERS.find, _CHECKS_ON, producer_groups),
    ("producer_group.delete", "producer_group.delete", _PRODUCERS.find, by_name(_PRODUCERS), producer_groups),
    ("endpoint.enable", "endpoint.change", endpoint, lambda found, _: endpoints.change(found, {}), group_endpoints),
    ("endpoint.delete", "endpoint.delete", endpoint, removing(endpoints.remove), group_endpoints),
    ("consumer_group.pause", "consumer_group.put", _CONSUMERS.find, put(_CONSUMERS, paused=True), consumer_groups),
    ("consumer_group.continue", "consumer_group.put", _CONSUMERS.find, put(_CONSUMERS, paused=False), consumer_groups),
    ("consumer_group.delete", "consumer_group.delete", _CONSUMERS.find, by_name(_CONSUMERS), consumer_groups),
    ("subscription.pause", "subscription.change", _PUSH.find, put(_PUSH, paused=True), subscriptions),
    ("subscription.continue", "subscription.change", _PUSH.find, put(_PUSH, paused=False), subscriptions),
    ("subscription.delete", "subscription.delete", _PUSH.find, removing(_PUSH.remove), subscriptions),
    ("key.revoke", "key.revoke", keys.find, removing(lambda found: keys.revoke(found.name)), api_keys),
)
KINDS = tuple((name, action, changing(action, find, apply), words) for name, action, find, apply, words in _KINDS)
