"""Figures of delivery: what each consumer group has in flight, and how far it is behind."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Count
from django.utils import timezone

from delivery import behind
from delivery.behind import QueueLag
from delivery.models import ConsumerGroup, Receipt

# A group takes two statements of some milliseconds.
MAX_GROUPS = 200


def in_flight() -> dict[str, int]:
    """Deliveries that are neither acked nor over, by the group's name. Receipts are few: each is gone within hours."""
    names = dict(ConsumerGroup.objects.values_list("id", "name"))
    rows = Receipt.objects.filter(state="flight").order_by().values_list("group_id").annotate(receipts=Count("*"))
    return {names[group_id]: receipts for group_id, receipts in rows if group_id in names}


@dataclass(frozen=True, slots=True)
class TopicLag:
    """How far a group is behind in a topic; `oldest_unacked_seconds` is 0 when it has acked all that was visible."""

    group: str
    topic: str
    lag: int
    oldest_unacked_seconds: float


def lags() -> Iterator[TopicLag]:
    """The lag of each group in each topic it reads, for the first MAX_GROUPS groups by name."""
    for group in ConsumerGroup.objects.order_by("name")[:MAX_GROUPS]:
        by_topic: dict[str, list[QueueLag]] = defaultdict(list)
        for queue in behind.queues_of(group):
            by_topic[queue.topic].append(queue)
        for topic, queues in by_topic.items():
            yield TopicLag(group.name, topic, sum(queue.lag for queue in queues), _oldest_seconds(queues))


def _oldest_seconds(queues: list[QueueLag]) -> float:
    times = [queue.oldest_unacked_at for queue in queues if queue.oldest_unacked_at is not None]
    return max(0.0, (timezone.now() - min(times)).total_seconds()) if times else 0.0
