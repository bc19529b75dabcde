"""Figures of delivery: what each consumer group has in flight, and how far it is behind."""

from collections import Counter
from collections.abc import Iterator

from django.db.models import Count

from delivery.models import ConsumerGroup, Receipt
from delivery.registry import lag

# A group takes one statement of some milliseconds.
MAX_GROUPS = 200


def in_flight() -> dict[str, int]:
    """Deliveries that are neither acked nor over, by the group's name. Receipts are few: each is gone within hours."""
    names = dict(ConsumerGroup.objects.values_list("id", "name"))
    rows = Receipt.objects.filter(state="flight").order_by().values_list("group_id").annotate(receipts=Count("*"))
    return {names[group_id]: receipts for group_id, receipts in rows if group_id in names}


def lags() -> Iterator[tuple[str, str, int]]:
    """The lag of each group in each topic it reads, for the first MAX_GROUPS groups by name."""
    for group in ConsumerGroup.objects.order_by("name")[:MAX_GROUPS]:
        by_topic: Counter[str] = Counter()
        for queue in lag(group):
            by_topic[queue.topic] += queue.lag
        for topic, entries in by_topic.items():
            yield group.name, topic, entries
