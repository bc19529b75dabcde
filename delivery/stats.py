"""Numbers of delivery: lag, oldest unacked message and deliveries in flight of each consumer group."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from django.db.models import QuerySet
from django.db.models.functions import Now

from delivery.models import ConsumerGroup
from delivery.receive.positions import FIND_LAGS_ANEW
from delivery.receive.turns import COUNT_WAITING, Waiting
from delivery.retries import retrying
from delivery.retries.retrying import ByTopic, Retrying
from store.cells import cells
from store.db import databases, sync
from store.db.statements import Statement
from store.naming import namespaces
from store.queues import Queue
from store.reading import progress
from store.rows import Lag


class InFlight(NamedTuple):
    """The number of deliveries in flight of a group."""

    group_id: int
    deliveries: int


class OldestReceipt(NamedTuple):
    """When the lowest entry of a queue for which a group has a receipt became visible."""

    group_id: int
    topic_id: int
    queue_id: int
    entered_at: datetime


COUNT_IN_FLIGHT = Statement(__file__, "count_in_flight", InFlight)
FIND_OLDEST_RECEIPTS = Statement(__file__, "find_oldest_receipts", OldestReceipt)

# The most groups whose numbers are shown, the first by name. 200 groups of 4 queues each take about 30 ms.
MAX_GROUPS = 1000
# A queue that a group reads: the id of the group, and the queue.
Place = tuple[int, Queue]
LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class QueueLag:
    """A queue that a group reads. `lag` is the number of entries that it was not handed yet.

    `oldest_unacked_at` is when the oldest message that the group has not acked became visible; None if all are acked. A
    retrying message counts again from its next delivery.
    """

    topic: str
    topic_id: int
    queue_id: int
    next_offset: int
    max_offset: int
    lag: int
    moved_at: datetime | None
    oldest_unacked_at: datetime | None


def queues_of(group: ConsumerGroup) -> list[QueueLag]:
    """The queues that the group reads, sorted by topic: of the topics that it has begun to read, and of its retry
    topic.
    """
    return _queues_of([group])[group.id]


def _queues_of(groups: Sequence[ConsumerGroup]) -> dict[int, list[QueueLag]]:
    """The queues of each of these groups, in all cells, one cell after the other."""
    found: dict[int, list[QueueLag]] = {group.id: [] for group in groups}
    for of_cell in cells.ask(lambda: _queues_in_cell(groups)).values():
        for group_id, queues in of_cell.items():
            found[group_id] += queues
    return found


def _queues_in_cell(groups: Sequence[ConsumerGroup]) -> dict[int, list[QueueLag]]:
    """The queues of each of these groups in this cell, by three statements; a fourth for groups that read ahead."""
    lags = progress.lags([group.id for group in groups])
    for row in (
        sync.read(FIND_LAGS_ANEW, {"reader_ids": list(lags), "max_queues": progress.MAX_QUEUES}) if groups else ()
    ):
        lags[row.reader_id].append(row)
    oldest = _oldest_receipts([row for rows in lags.values() for row in rows])
    waiting = _waiting([group.id for group in groups if reads_ahead(group)])
    return {group_id: [_queue(row, oldest, waiting) for row in rows] for group_id, rows in lags.items()}


def reads_ahead(group: ConsumerGroup) -> bool:
    """Whether messages that the group has read may wait: it is ordered or fair, or has limits."""
    return group.ordered or group.fair_by is not None or group.limits is not None


def _queue(row: Lag, oldest: Mapping[Place, datetime], waiting: Mapping[Place, Waiting]) -> QueueLag:
    place = (row.reader_id, (row.topic_id, row.queue_id))
    ahead = waiting.get(place)
    # The messages of receipts, and messages that were read ahead, are older than all messages that the group has not
    # read yet.
    times = (oldest.get(place), ahead and ahead.oldest_at)
    return QueueLag(
        topic=row.topic,
        topic_id=row.topic_id,
        queue_id=row.queue_id,
        next_offset=row.next_offset,
        max_offset=row.max_offset,
        lag=row.lag + (ahead.waiting if ahead else 0),
        moved_at=row.moved_at,
        oldest_unacked_at=min((time for time in times if time is not None), default=row.next_entered_at),
    )


def _waiting(group_ids: Sequence[int]) -> dict[Place, Waiting]:
    """How many entries each of these groups has read ahead or parked, by group and queue."""
    rows = sync.read(COUNT_WAITING, {"group_ids": list(group_ids)}) if group_ids else ()
    return {(row.group_id, (row.topic_id, row.queue_id)): row for row in rows}


def _oldest_receipts(rows: Sequence[Lag]) -> dict[Place, datetime]:
    """When the oldest message with a receipt became visible, by group and queue."""
    parameters = {
        "group_id": [row.reader_id for row in rows],
        "topic_id": [row.topic_id for row in rows],
        "queue_id": [row.queue_id for row in rows],
    }
    found = sync.read(FIND_OLDEST_RECEIPTS, parameters) if rows else ()
    return {(row.group_id, (row.topic_id, row.queue_id)): row.entered_at for row in found}


def in_flight() -> dict[str, int]:
    """The number of deliveries in flight by group name; groups without deliveries in flight are missing."""
    names = dict(_groups().values_list("id", "name"))
    return {names[group_id]: receipts for group_id, receipts in _in_flight().items() if group_id in names}


def _groups() -> QuerySet[ConsumerGroup]:
    """All groups, from the cell's own copy."""
    return ConsumerGroup.objects.using(databases.here())


def _in_flight() -> dict[int, int]:
    """The number of deliveries in flight by group id: handed out, not settled, invisible time not over."""
    found: Counter[int] = Counter()
    for rows in cells.ask(lambda: sync.read(COUNT_IN_FLIGHT)).values():
        found.update({row.group_id: row.deliveries for row in rows})
    return dict(found)


@dataclass(frozen=True, slots=True)
class TopicLag:
    """A group's lag in a topic; `oldest_unacked_seconds` is 0 when the group has acked all visible messages."""

    group: str
    topic: str
    lag: int
    oldest_unacked_seconds: float


def lags(namespace: str | None = None) -> Iterator[TopicLag]:
    """The lag of each group, or of each in a namespace, in each topic it reads, for the first MAX_GROUPS by name."""
    # The ages are computed by the database's clock, which has also set the times of the messages.
    wanted = _groups().filter(namespaces.within(namespace))
    groups = list(wanted.annotate(read_at=Now()).order_by("name")[:MAX_GROUPS])
    queues_of_groups = _queues_of(groups)
    for group in groups:
        by_topic: dict[str, list[QueueLag]] = defaultdict(list)
        for queue in queues_of_groups[group.id]:
            by_topic[queue.topic].append(queue)
        for topic, queues in by_topic.items():
            yield TopicLag(
                group.name, topic, sum(queue.lag for queue in queues), _oldest_seconds(queues, group.read_at)
            )


def _oldest_seconds(queues: list[QueueLag], now: datetime) -> float:
    times = [queue.oldest_unacked_at for queue in queues if queue.oldest_unacked_at is not None]
    return max(0.0, (now - min(times)).total_seconds()) if times else 0.0


@dataclass(frozen=True, slots=True)
class GroupStats:
    """A consumer group with its deliveries in flight and its lag in each queue that it reads.

    `partial`: the group reads progress.MAX_QUEUES queues or more, and the numbers do not include further queues.
    """

    group: ConsumerGroup
    in_flight: int
    queues: list[QueueLag]
    retrying_by_topic: ByTopic

    @property
    def retrying(self) -> Retrying:
        """The retrying messages of the group, of all topics together."""
        return retrying.in_all(self.retrying_by_topic)

    @property
    def lag(self) -> int:
        """The number of entries that the group was not handed yet, over its queues."""
        return sum(queue.lag for queue in self.queues)

    @property
    def topics(self) -> list[str]:
        """The topics that the group reads."""
        return list(dict.fromkeys(queue.topic for queue in self.queues))

    @property
    def moved_at(self) -> datetime | None:
        """The time of the group's last move in any queue."""
        return max((queue.moved_at for queue in self.queues if queue.moved_at is not None), default=None)

    @property
    def oldest_unacked_at(self) -> datetime | None:
        """When the oldest message that the group has not acked became visible."""
        times = (queue.oldest_unacked_at for queue in self.queues)
        return min((time for time in times if time is not None), default=None)

    def urgency(self) -> tuple[datetime, int, str]:
        """A sort key for groups: the oldest unacked message first, then the largest lag, then the name."""
        return (self.oldest_unacked_at or LAST, -self.lag, self.group.name)

    @property
    def partial(self) -> bool:
        return len(self.queues) >= progress.MAX_QUEUES


def of_groups(groups: Sequence[ConsumerGroup]) -> list[GroupStats]:
    """The lag, the deliveries in flight and the retries of these groups."""
    in_flight, queues, waits = _in_flight(), _queues_of(groups), retrying.of_groups(groups)
    return [GroupStats(group, in_flight.get(group.id, 0), queues[group.id], waits[group.id]) for group in groups]


def by_urgency(namespace: str | None = None) -> list[GroupStats]:
    """The first MAX_GROUPS consumer groups by name, of all or of a namespace, the oldest unacked messages first. Groups
    that have acked all visible messages follow, the group with the largest lag first.
    """
    groups = ConsumerGroup.objects.filter(namespaces.within(namespace)).order_by("name")
    return sorted(of_groups(list(groups[:MAX_GROUPS])), key=GroupStats.urgency)
