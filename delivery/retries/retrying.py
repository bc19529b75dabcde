"""Retrying messages: by consumer group and topic, how many wait for the next attempt, since when and until when.

A retrying message is not in the lag, because it was handed out, and not in flight, because its last delivery is over.
In an ordered group it is held in its queue; in another group it waits in a delay level or a timer for the retry topic.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models.functions import Now

from delivery.models import ConsumerGroup
from scheduling.release import QUEUES_OF_LEVELS
from store.cells import cells
from store.db import databases, sync
from store.db.statements import Statement
from store.naming import namespaces, topic_names
from store.queues import Queue


class RetryingOf(NamedTuple):
    """The retrying messages of a group and a topic; `topic` is None when the topic was deleted."""

    group_id: int
    topic_id: int
    topic: str | None
    messages: int
    oldest_at: datetime
    next_at: datetime


class StandingQueue(NamedTuple):
    """A queue of an ordered group, or one key in such a queue, that waits until a held message is offered again."""

    group_id: int
    topic: str
    queue_id: int
    queue_offset: int
    sharding_key: str
    message_id: UUID
    reconsume_times: int
    until: datetime


class Handed(NamedTuple):
    """How many entries a group was handed since a given time."""

    group_id: int
    handed: int


COUNT_HANDED_SINCE = Statement(__file__, "count_handed_since", Handed)
COUNT_RETRYING = Statement(__file__, "count_retrying", RetryingOf)
FIND_STANDING_QUEUES = Statement(__file__, "find_standing_queues", StandingQueue)

# Counting stops at this number: separately for held receipts, for timers of retries, and for entries of each delay
# level. Each such count takes 50 ms.
MAX_WAITING = 100_000
MAX_STANDING = 100
# The number of the latest moves of progress that are read for each queue, in about 0.2 ms.
MAX_MOVES = 1000


@dataclass(frozen=True, slots=True)
class Retrying:
    """How many messages are retrying, since when the oldest waits, and when the next is delivered again, if any."""

    messages: int = 0
    oldest_at: datetime | None = None
    next_at: datetime | None = None

    def __add__(self, other: "Retrying") -> "Retrying":
        oldest = [one.oldest_at for one in (self, other) if one.oldest_at is not None]
        following = [one.next_at for one in (self, other) if one.next_at is not None]
        return Retrying(self.messages + other.messages, min(oldest, default=None), min(following, default=None))


# The number and times of a group's retrying messages, by the name of the topic that first delivered the messages.
ByTopic = Mapping[str, Retrying]


@dataclass(frozen=True, slots=True)
class OfTopic:
    """How many messages of a group and a topic are retrying, and for how long the oldest has waited."""

    group: str
    topic: str
    messages: int
    oldest_seconds: float


def everywhere(count: int, namespace: str | None = None) -> Iterator[OfTopic]:
    """The retrying messages of each topic, for the first `count` groups by name, in the cell of this work.

    With `namespace`, only groups of this namespace.
    """
    rows = ConsumerGroup.objects.using(databases.here()).filter(namespaces.within(namespace))
    # The database's clock is used, because it has set the times of the waiting messages.
    groups = list(rows.annotate(read_at=Now()).order_by("name")[:count])
    waits = of_groups(groups)
    for group in groups:
        for topic, found in waits[group.id].items():
            age = 0.0 if found.oldest_at is None else (group.read_at - found.oldest_at).total_seconds()
            yield OfTopic(group.name, topic, found.messages, max(age, 0.0))


def of_groups(groups: Sequence[ConsumerGroup]) -> dict[int, ByTopic]:
    """The retrying messages of each group, by topic; topics without retrying messages are missing."""
    found: dict[int, dict[str, Retrying]] = {group.id: {} for group in groups}
    asked = {"group_ids": list(found), "max_waiting": MAX_WAITING, **QUEUES_OF_LEVELS}
    for rows in cells.ask(lambda: sync.read(COUNT_RETRYING, asked)).values() if found else ():
        for row in rows:
            topic = row.topic or topic_names.deleted(row.topic_id)
            waits = found[row.group_id].get(topic, Retrying())
            found[row.group_id][topic] = waits + Retrying(row.messages, row.oldest_at, row.next_at)
    return {group_id: dict(sorted(by_topic.items())) for group_id, by_topic in found.items()}


def in_all(by_topic: ByTopic) -> Retrying:
    """The retrying messages of all topics together."""
    return sum(by_topic.values(), Retrying())


def handed_since(since: Mapping[int, datetime], queues: Iterable[tuple[int, Queue]]) -> dict[int, int]:
    """The number of entries of these queues that each group was handed since its time in `since`, by group id.

    Only the last MAX_MOVES moves in each queue are read, so the number is a lower bound for a group that moves often.
    """
    asked = [(group_id, *queue) for group_id, queue in queues if group_id in since]
    parameters = {
        "group_id": list(since),
        "since": list(since.values()),
        "queue_group_id": [group_id for group_id, _, _ in asked],
        "topic_id": [topic_id for _, topic_id, _ in asked],
        "queue_id": [queue_id for _, _, queue_id in asked],
        "max_moves": MAX_MOVES,
    }
    found: Counter[int] = Counter()
    for rows in cells.ask(lambda: sync.read(COUNT_HANDED_SINCE, parameters)).values() if asked else ():
        found.update({row.group_id: row.handed for row in rows})
    return dict(found)


def standing(groups: Sequence[ConsumerGroup], min_seconds: float) -> list[StandingQueue]:
    """The queues of ordered groups that wait at least `min_seconds` more behind a message, the longest wait first."""
    ids = [group.id for group in groups if group.ordered]
    limits = {"group_ids": ids, "min_seconds": min_seconds, "max_queues": MAX_STANDING}
    found = cells.ask(lambda: sync.read(FIND_STANDING_QUEUES, limits)) if ids else {}
    return sorted((row for rows in found.values() for row in rows), key=lambda row: row.until, reverse=True)
