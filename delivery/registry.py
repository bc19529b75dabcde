"""Consumer groups as an operator keeps them: made, changed, listed and taken away."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from delivery import groups, retry_policies
from delivery.models import ConsumerGroup, Receipt, RetryQueue
from store import registry, topics
from store.errors import MessageIllegal


def page(after: str, count: int) -> Sequence[ConsumerGroup]:
    """Consumer groups by name, the first `count` behind the name `after`."""
    return list(ConsumerGroup.objects.filter(name__gt=after).order_by("name")[:count])


def find(name: str) -> ConsumerGroup:
    """The consumer group of this name.

    Raises MessageIllegal for what is no name, or GroupNotExist.
    """
    groups.judge_name(name)
    group = ConsumerGroup.objects.filter(name=name).first()
    if group is None:
        raise groups.absent(name)
    return group


def put(name: str, changes: Mapping[str, Any]) -> tuple[ConsumerGroup, bool]:
    """Makes the group, or changes the fields given (`start_at`, `ordered`, `max_reconsume_times`, `retry_policy`,
    `paused`); others stay as they are.

    Tells whether it was made. Raises MessageIllegal. `start_at` counts for topics that the group has not begun to read.
    Other processes see the change within 2 s.
    """
    groups.judge_name(name)
    if "retry_policy" in changes:
        changes = {**changes, "retry_policy": retry_policies.parse(changes["retry_policy"])}
    with transaction.atomic():
        new = {"retry_policy": retry_policies.parse({"kind": "table"}), **changes}
        group, made = ConsumerGroup.objects.select_for_update().get_or_create(name=name, defaults=new)
        if not made and changes.get("ordered", group.ordered) != group.ordered:
            _judge_settled(group)
        if not made:
            for field, value in changes.items():
                setattr(group, field, value)
            group.save(update_fields=list(changes))
    groups.forget(name)
    return group, made


def _judge_settled(group: ConsumerGroup) -> None:
    """Raises MessageIllegal while messages are held in their order: the other way of delivery would not find them."""
    if Receipt.objects.filter(group_id=group.id).exclude(state="flight").exists():
        raise MessageIllegal(f"ordered of {group.name} cannot change while messages wait in order: reset its offsets.")


def remove(name: str) -> None:
    """Takes a group away with its progress, its deliveries in flight and its retries. Its dead letters stay readable.

    A group made later under the same name begins anew. A process that receives may not know for 2 s. Raises
    MessageIllegal or GroupNotExist.
    """
    with transaction.atomic():
        group = find(name)
        ConsumerGroup.objects.filter(id=group.id).delete()
        Receipt.objects.filter(group_id=group.id).delete()
        RetryQueue.objects.filter(group_id=group.id).delete()
        registry.remove_own(topics.RETRY_PREFIX + name)
        _remove_if_empty(topics.DEAD_LETTER_PREFIX + name)
    groups.forget(name)


def _remove_if_empty(topic_name: str) -> None:
    topic = registry.named(topic_name)
    if topic is not None and all(queue.max_offset == queue.min_offset for queue in registry.bounds(topic)):
        registry.remove_own(topic_name)
