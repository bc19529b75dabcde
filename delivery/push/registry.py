"""The registry of subscriptions: created, changed, given new secrets, listed and deleted by operators."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count

from delivery import filters, groups, registry, stats
from delivery.errors import SubscriptionNotExist
from delivery.models import ConsumerGroup, RetryQueue, Subscription
from delivery.push import health
from delivery.stats import QueueLag
from store import registry as topic_registry
from store.cells import cells, copies
from store.db import databases, fields
from store.errors import FilterIllegal, MessageIllegal
from store.models import Topic
from store.naming import names, namespaces, topics
from webhooks import registration, signing

MAX_SUBSCRIPTIONS = 1000
# The most characters of a subscription's name.
MAX_NAME = 120
FIELDS = fields.of(
    Subscription,
    fields.Text(
        "group",
        "Consumer group",
        help="The consumer group of the pushes, with the retries and dead letters of the pushed messages",
        needed=True,
        source="group_name",
        most=names.MAX_CHARACTERS,
    ),
    fields.Text("topic", "Topic", needed=True, source="topic_name", most=names.MAX_CHARACTERS),
    fields.Json(
        "filter",
        "Filter",
        help='Which messages are pushed: A || B, or {"sql": "…"}',
        unset="every message",
        parse=filters.parse,
        schema=filters.SCHEMA,
        may_be_text=True,
    ),
    registration.URL,
    fields.Whole(
        "max_batch", "Messages in a call", help="Messages in one call", least=1, most=settings.MAX_RECEIVE_MESSAGES
    ),
    registration.TIMEOUT,
    replace(registration.CONCURRENCY, help="Calls at a time, of each worker process"),
    fields.Switch(
        "paused", "Paused", help="No call begins after the answer to this change; running calls are finished"
    ),
)
# Fields that change how a server is called. A change of them is not a change of the server or of the messages.
PACE = fields.named(FIELDS, "max_batch", "timeout_seconds", "concurrency")
# Fields that change which server is called, or with which messages.
AIM = fields.named(FIELDS, "group", "topic", "url", "filter")


def page(after: str, count: int, matching: str = "", namespace: str | None = None) -> Sequence[Subscription]:
    """Subscriptions by name: the first `count` after `after` whose names contain `matching`, in any case."""
    rows = Subscription.objects.filter(namespaces.within(namespace))
    return health.show(topic_registry.by_name(rows, after, count, matching))


def find(name: str) -> Subscription:
    """The subscription of this name.

    Raises MessageIllegal for an invalid name, or SubscriptionNotExist.
    """
    subscription = named(name)
    if subscription is None:
        raise absent(name)
    return subscription


def absent(name: str) -> SubscriptionNotExist:
    """The refusal for a subscription name that does not exist."""
    return SubscriptionNotExist(f"There is no subscription {name}: PUT /v1/subscriptions/{quote(name)} makes it.")


def put(name: str, given: Mapping[str, object]) -> tuple[Subscription, bool]:
    """Creates the subscription, or changes the columns given; other columns keep their values.

    A change makes the subscription healthy again, also when it was disabled. A `secret` replaces the old secret as
    `rotate_secret` does. Returns the subscription, and whether it was created. Raises MessageIllegal for a missing
    field, a URL that may not be called or a secret that cannot sign, and the refusals of a receive with this group,
    topic and filter.
    """
    existing = named(name)
    if existing is None:
        _validate_new(name, given)
    _validate({field: value for field, value in given.items() if existing is None or value != getattr(existing, field)})
    if existing is not None:
        return _change(existing, given), False
    new = {**given, "secret": given.get("secret") or signing.make_secret()}
    try:
        with transaction.atomic():
            subscription = Subscription.objects.create(name=name, **new)
            copies.write(Subscription, [subscription.id])
            return subscription, True
    except IntegrityError:
        # Another process has created the subscription since `named` looked for it.
        return _change(find(name), given), False


def rotate_secret(subscription: Subscription, secret: str | None) -> Subscription:
    """Gives the subscription a new secret; None: a random secret. For ROTATION_HOURS both secrets sign each call.

    Raises MessageIllegal for a secret that cannot sign.
    """
    given = {"secret": secret or signing.make_secret()}
    registration.validate(given)
    return _change(subscription, given)


def remove(subscription: Subscription) -> None:
    """Deletes a subscription. The group keeps its progress; messages in flight are settled or redelivered."""
    with copies.change():
        subscription_id = subscription.id
        subscription.delete()
        copies.write(Subscription, [subscription_id])


def lag(subscription: Subscription) -> int:
    """The number of entries in the topic's queues, and in the group's retry queue of the topic, not handed out yet."""
    topic = topic_registry.named(subscription.topic_name)
    group = ConsumerGroup.objects.filter(name=subscription.group_name).first()
    if topic is None or group is None:
        return 0
    return cells.at(topic.cell_id, lambda: _lag_here(topic, group))


def _lag_here(topic: Topic, group: ConsumerGroup) -> int:
    rows = stats.queues_of(group)
    retries = topic_registry.named(topics.RETRY_PREFIX + group.name)
    retry_queues = RetryQueue.objects.filter(group_id=group.id, topic_id=topic.id).values_list("queue_id", flat=True)
    own = _lag(rows, topic, range(topic.queues), from_latest=group.start_at == "latest")
    return own + (_lag(rows, retries, list(retry_queues), from_latest=False) if retries is not None else 0)


def states() -> dict[str, int]:
    """The number of subscriptions in each state, by this cell's health of the subscriptions."""
    rows = Subscription.objects.using(databases.here()).order_by().values_list("state")
    return dict(rows.annotate(subscriptions=Count("*")))


def _lag(rows: Sequence[QueueLag], topic: Topic, queue_ids: Container[int], *, from_latest: bool) -> int:
    read = [row.lag for row in rows if row.topic == topic.name and row.queue_id in queue_ids]
    if read or from_latest:
        return sum(read)
    # The group has not begun to read the topic.
    bounds = [queue for queue in topic_registry.bounds(topic) if queue.queue_id in queue_ids]
    return sum(queue.max_offset - queue.min_offset for queue in bounds)


def named(name: str) -> Subscription | None:
    """The subscription of this name, or None. Raises MessageIllegal for an invalid name."""
    if not names.is_name(name, MAX_NAME):
        raise MessageIllegal(f"subscription {name[:140]!r} is not a valid subscription name: {names.rule(MAX_NAME)}.")
    found = Subscription.objects.filter(name=name).first()
    return None if found is None else health.of_one(found)


def _change(subscription: Subscription, given: Mapping[str, object]) -> Subscription:
    changes = {**registration.changes(subscription, given), "failing_since": None}
    with transaction.atomic():
        Subscription.objects.filter(id=subscription.id).update(**changes)
        copies.write(Subscription, [subscription.id], besides=changes)
    return find(subscription.name)


def _validate_new(name: str, given: Mapping[str, object]) -> None:
    missing = [field.name for field in FIELDS if field.needed and field.column not in given]
    if missing:
        raise MessageIllegal(
            f"{', '.join(missing)}: missing. The subscription {name} does not exist yet, and a new subscription "
            "needs these fields."
        )
    if Subscription.objects.count() >= MAX_SUBSCRIPTIONS:
        raise MessageIllegal(f"There are {MAX_SUBSCRIPTIONS} subscriptions, the limit: delete some.")


def _validate(changes: Mapping[str, object]) -> None:
    registration.validate(changes)
    if "filter" in changes:
        _validate_filter(changes["filter"])
    if "topic_name" in changes:
        _validate_topic(str(changes["topic_name"]))
    if "group_name" in changes:
        _validate_group(str(changes["group_name"]))


def _validate_filter(given: object) -> None:
    filters.parse(given)
    if b"\\u0000" in msgspec.json.encode(given):
        raise FilterIllegal("The filter holds the character U+0000, which no property can hold: remove this character.")


def _validate_topic(name: str) -> None:
    topics.require_readable(name, topic_registry.find(name).permission)


def _validate_group(name: str) -> None:
    """Creates the group if AUTO_CREATE_TOPICS is on, as a receive does. Raises GroupNotExist."""
    groups.validate_name(name)
    if settings.AUTO_CREATE_TOPICS and not ConsumerGroup.objects.filter(name=name).exists():
        registry.put(name, {})
    registry.find(name)
