"""The registry of consumer groups: created, changed, listed and deleted by operators."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from delivery import groups
from delivery.limits import bounds, keys
from delivery.limits.models import Pace, Waiting
from delivery.models import Bundle, ConsumerGroup, Receipt, RetryQueue
from delivery.retries import policies
from store import registry
from store.cells import cells, copies
from store.db import connections, fields
from store.db.statements import Statement
from store.errors import MessageIllegal
from store.messages import rules
from store.models import Topic
from store.naming import namespaces, topics
from store.notices import caches
from store.reading import progress

FIND_GROUPS = Statement(__file__, "find_groups", one=int)
DELETE_LEFT_RECEIPTS = Statement(__file__, "delete_left_receipts", one=int)
DELETE_LEFT_BUNDLES = Statement(__file__, "delete_left_bundles", one=int)
DELETE_LEFT_WAITING = Statement(__file__, "delete_left_waiting")
DELETE_SPENT_PACE = Statement(__file__, "delete_spent_pace")

MAX_RECEIPTS_AT_ONCE = 1000
MAX_STEPS = 100
MAX_PACES_AT_ONCE = 10_000

EITHER = "An ordered group keeps the order of each sharding key: give sharding_key or null as fair_by."
STARTS = ("earliest", "latest")
QUEUE_ORDERS = ("turns", "priority")
FIELDS = fields.of(
    ConsumerGroup,
    fields.Choice(
        "start_at", "Starts at", help="The place where it begins to read a topic", component="StartAt", choices=STARTS
    ),
    fields.Switch("ordered", "In order", help="One batch of a queue is handed out at a time"),
    fields.Choice(
        "queue_order",
        "Order of queues",
        help="turns: the queues of a topic take turns at being first; priority: queues with a higher number come "
        "first, and lower queues wait while a higher queue has messages",
        component="QueueOrder",
        choices=QUEUE_ORDERS,
    ),
    fields.Text(
        "fair_by",
        "Fair by",
        help="sharding_key, or property: and a name: these keys take turns, so that a key with many "
        "messages does not delay the others; an ordered group allows only sharding_key",
        unset="messages come in the order of their queues",
    ),
    fields.Json(
        "limits",
        "Limits",
        help="by: sharding_key, property: and a name, or group; in_flight, per_second, burst: how many messages of one "
        "value of a topic may be in flight, be handed out in a second, and at once; values: limits of single values",
        unset="no limits",
        parse=bounds.parse,
        schema=bounds.Limits,
    ),
    fields.Whole(
        "max_reconsume_times",
        "Retries at most",
        help="Retries before a message is a dead letter",
        unset=f"the broker's MAX_RECONSUME_TIMES, {settings.MAX_RECONSUME_TIMES}",
        least=0,
        most=rules.MAX_RECONSUME_TIMES,
    ),
    fields.Json(
        "retry_policy",
        "Retry policy",
        help="Give the kind table, exponential or none",
        default='{"kind": "table"}, the delay levels from the third on; of an ordered group '
        '{"kind": "table", "delay_seconds": [1.0]}',
        parse=policies.parse,
        schema=policies.Policy,
    ),
    fields.Switch("paused", "Paused", help="No message is handed out after the answer to this change"),
)


def page(after: str, count: int, matching: str = "", namespace: str | None = None) -> Sequence[ConsumerGroup]:
    """Consumer groups by name: the first `count` after `after` whose names contain `matching`, in any case."""
    rows = ConsumerGroup.objects.filter(namespaces.within(namespace))
    return registry.by_name(rows, after, count, matching)


def find(name: str) -> ConsumerGroup:
    """The consumer group of this name.

    Raises MessageIllegal for an invalid name, or GroupNotExist.
    """
    groups.validate_name(name)
    group = ConsumerGroup.objects.filter(name=name).first()
    if group is None:
        raise groups.absent(name)
    return group


def put(name: str, changes: Mapping[str, object]) -> tuple[ConsumerGroup, bool]:
    """Creates the group, or changes the given fields of FIELDS; other fields keep their values.

    Returns the group, and whether it was created. Raises MessageIllegal. `start_at` only affects topics that the group
    has not begun to read. When `ordered` changes, a group with the default `retry_policy` gets the default policy for
    the new value. At the return each process uses the change.
    """
    groups.validate_name(name)
    if "retry_policy" in changes:
        changes = {**changes, "retry_policy": policies.parse(changes["retry_policy"])}
    if changes.get("limits") is not None:
        changes = {**changes, "limits": bounds.parse(changes["limits"])}
    if changes.get("fair_by") is not None:
        keys.validate(changes["fair_by"])
    _require_possible(ordered=changes.get("ordered"), fair_by=changes.get("fair_by"), kept=changes.get("limits"))
    defaults = {"retry_policy": policies.default(ordered=bool(changes.get("ordered")))}
    return registry.put_row(ConsumerGroup, name, _with_default_policy(name, changes), defaults, _require_settled)


def _with_default_policy(name: str, changes: Mapping[str, object]) -> Mapping[str, object]:
    """The changes. If `ordered` changes and the group has the default retry policy, also the new default policy."""
    group, ordered = named(name), changes.get("ordered")
    if group is None or ordered in (None, group.ordered) or "retry_policy" in changes:
        return changes
    if group.retry_policy != policies.default(ordered=group.ordered):
        return changes
    return {**changes, "retry_policy": policies.default(ordered=bool(ordered))}


def _require_settled(group: ConsumerGroup, changes: Mapping[str, object]) -> None:
    """Raises MessageIllegal when `ordered` is combined with a `fair_by` other than the sharding key; when `ordered`
    changes while messages are held, parked or waiting for turns; when `fair_by` or `limits` ends while messages wait by
    their keys, or when new `limits` need other keys than the waiting messages have.
    """
    after: dict[str, Any] = {name: changes.get(name, getattr(group, name)) for name in ("ordered", "fair_by", "limits")}
    ordered, fair_by, kept = after.values()
    _require_possible(ordered=ordered, fair_by=fair_by, kept=kept)
    ahead = Waiting.objects.filter(group_id=group.id)
    if ordered != group.ordered:
        _require_none_waits(ahead, f"ordered of {group.name} cannot change while messages wait for their turns")
        in_order = Receipt.objects.filter(group_id=group.id).exclude(state="flight")
        _require_none_waits(in_order, f"ordered of {group.name} cannot change while messages wait in order")
    before, by = keys.source(group.fair_by, group.limits), keys.source(fair_by, kept)
    if by is None and before is not None:
        ended = "limits" if group.fair_by is None else "fair_by"
        _require_none_waits(ahead, f"{ended} of {group.name} cannot end while messages wait for their turns")
    elif kept is not None and kept["by"] != keys.GROUP and before not in (None, by):
        _require_none_waits(ahead, f"limits of {group.name} cannot be by {by} while messages wait by {before}")


def _require_possible(*, ordered: object, fair_by: object, kept: Any) -> None:
    """Raises MessageIllegal when a group cannot have these settings together."""
    if ordered and fair_by not in (None, keys.SHARDING_KEY):
        raise MessageIllegal(EITHER)
    if kept is not None:
        bounds.validate(ordered=ordered, fair_by=fair_by, by=kept["by"])


def _require_none_waits(rows: QuerySet[Receipt] | QuerySet[Waiting], what: str) -> None:
    if any(cells.each(rows.exists)):
        raise MessageIllegal(f"{what}: reset the offsets of the group first.")


def remove(name: str) -> None:
    """Deletes a group with its deliveries in flight and its retries; `clean_up` deletes its progress.

    Its dead letters stay readable. A new group of this name begins without progress. Raises MessageIllegal or
    GroupNotExist.
    """
    with copies.change():
        group = find(name)
        ConsumerGroup.objects.filter(id=group.id).delete()
        cells.each(lambda: Bundle.objects.filter(group_id=group.id).delete())
        cells.each(lambda: Receipt.objects.filter(group_id=group.id).delete())
        cells.each(lambda: Waiting.objects.filter(group_id=group.id).delete())
        cells.each(lambda: Pace.objects.filter(group_id=group.id).delete())
        queues = RetryQueue.objects.filter(group_id=group.id)
        keys = list(queues.values_list("pk", flat=True))
        queues.delete()
        copies.write(RetryQueue, keys)
        copies.write(ConsumerGroup, [group.id])
        registry.remove_own(topics.RETRY_PREFIX + name)
        _remove_if_empty(topics.DEAD_LETTER_PREFIX + name)
        caches.drop_everywhere()


def dead_letter_topic(group_name: str) -> Topic | None:
    """The topic of a group's dead letters; None when the group never had a dead letter."""
    return registry.named(topics.DEAD_LETTER_PREFIX + group_name)


def _remove_if_empty(topic_name: str) -> None:
    topic = registry.named(topic_name)
    if topic is not None and not any(cells.each(lambda: _has_entries(topic))):
        registry.remove_own(topic_name)


def _has_entries(topic: Topic) -> bool:
    return any(queue.max_offset > queue.min_offset for queue in registry.bounds(topic))


def named(name: str) -> ConsumerGroup | None:
    """The consumer group of this name, or None."""
    return ConsumerGroup.objects.filter(name=name).first()


async def clean_up() -> set[int]:
    """Deletes receipts and then progress of deleted groups, within limits. Returns the groups' ids.

    Also deletes entries of deleted topics that groups have read ahead, and rates of values that are not in use. A
    process that gets no notices may cache a deleted group for seconds and hand out messages to it. Each of these
    receives also writes a move to the ledger, so the next run finds the group by its progress.
    """
    # Progress is read first, so a group that is created after this read does not look like a deleted group.
    readers = await progress.readers()
    existing = set(await connections.read(FIND_GROUPS, {"ids": list(readers)}))
    deleted = readers - existing
    if deleted:
        await _delete(list(deleted))
    await connections.read(DELETE_LEFT_WAITING, {"group_ids": list(deleted)})
    await connections.read(DELETE_SPENT_PACE, {"max_rows": MAX_PACES_AT_ONCE})
    return deleted


async def _delete(group_ids: list[int]) -> None:
    for _ in range(MAX_STEPS):
        # Bundles go before receipts: a delivery that leaves its bundle meanwhile has a receipt by the second statement.
        left = [
            *await connections.read(DELETE_LEFT_BUNDLES, {"group_ids": group_ids, "max_bundles": MAX_RECEIPTS_AT_ONCE}),
            *await connections.read(
                DELETE_LEFT_RECEIPTS, {"group_ids": group_ids, "max_receipts": MAX_RECEIPTS_AT_ONCE}
            ),
        ]
        if not left and not await progress.forget(group_ids):
            return
