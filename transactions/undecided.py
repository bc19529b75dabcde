"""What is undecided: how many transactions wait for their end, since when, and what must wait for them in turn."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from store.errors import MessageIllegal
from store.models import Topic
from transactions.models import HalfMessage, ProducerGroup

# An exact count of a million rows takes 0.1 s and more; beyond it the number only says "very many".
MAX_COUNTED = 1_000_000


@dataclass(frozen=True, slots=True)
class Undecided:
    """The transactions of a group that wait for their decision, counted to MAX_COUNTED, and the age of the oldest."""

    pending: int
    oldest_pending_at: datetime | None


def of_group(group_id: int) -> Undecided:
    """What waits in a producer group; discarded transactions wait for an operator and are not in it."""
    waiting = HalfMessage.objects.filter(producer_group_id=group_id, discarded_at__isnull=True)
    oldest = waiting.order_by("stored_at").values_list("stored_at", flat=True).first()
    return Undecided(_count(waiting), oldest)


def judge_group(group: ProducerGroup) -> None:
    """Raises MessageIllegal while the group has transactions without a decision, discarded ones among them."""
    left = _count(HalfMessage.objects.filter(producer_group_id=group.id))
    if left:
        raise MessageIllegal(
            f"The producer group {group.name} has {left} undecided transactions: "
            "end them, or resolve the discarded ones, before it is deleted."
        )


def judge_topic(topic: Topic) -> None:
    """Raises MessageIllegal while transactions without a decision hold messages of the topic.

    Reads the half messages from end to end: no index leads from a topic to them, and none is worth its price.
    """
    left = _count(HalfMessage.objects.filter(topic_ids__contains=[topic.id]))
    if left:
        raise MessageIllegal(
            f"The topic {topic.name} has messages of {left} undecided transactions: "
            "end them, or resolve the discarded ones, before it is deleted."
        )


def _count(rows: QuerySet[HalfMessage]) -> int:
    return rows.order_by()[:MAX_COUNTED].count()
