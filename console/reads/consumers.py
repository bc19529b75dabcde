"""Consumer groups: how far they have come in each queue, and how far they are behind."""

from dataclasses import dataclass
from datetime import datetime

from console.reads import queues
from console.reads.counts import Count, up_to
from delivery.models import ConsumerGroup, Receipt
from store.models import Progress, Topic

PAGE = 25
# Queues of one group that are looked at: each is one look at the end of an index, 1 ms over 8 segments.
QUEUES = 200
IN_FLIGHT_LIMIT = 10_000


@dataclass(frozen=True)
class Reading:
    """Where a group stands in a queue. Without a move of its own it will start where the group starts."""

    topic: str
    queue_id: int
    next_offset: int
    bounds: queues.Bounds
    moved_at: datetime | None

    @property
    def lag(self) -> int:
        """Entries of the queue that the group has not come to."""
        return max(0, self.bounds.max_offset - max(self.next_offset, self.bounds.min_offset))


@dataclass(frozen=True)
class Consumers:
    """A consumer group with where it stands; `partial` says that it reads more queues than were looked at."""

    group: ConsumerGroup
    in_flight: Count
    readings: list[Reading]
    partial: bool

    @property
    def lag(self) -> int:
        """Entries the group has not come to, over its queues."""
        return sum(reading.lag for reading in self.readings)

    @property
    def topics(self) -> list[str]:
        """The topics the group reads."""
        return list(dict.fromkeys(reading.topic for reading in self.readings))

    @property
    def moved_at(self) -> datetime | None:
        """When the group last came further."""
        return max((reading.moved_at for reading in self.readings if reading.moved_at), default=None)


@dataclass(frozen=True)
class Page:
    """A page of consumer groups by name, and the name the next page goes on behind (empty: there is none)."""

    groups: list[Consumers]
    after: str


def page(after: str, size: int = PAGE) -> Page:
    """Consumer groups by name, from the first behind `after`."""
    found = list(ConsumerGroup.objects.filter(name__gt=after).order_by("name")[: size + 1])
    shown = found[:size]
    return Page([consumers(group) for group in shown], shown[-1].name if len(found) > size else "")


def find(name: str) -> Consumers | None:
    """The consumer group of this name."""
    group = ConsumerGroup.objects.filter(name=name).first()
    return consumers(group) if group else None


def consumers(group: ConsumerGroup) -> Consumers:
    """A group with its progress, its lag and what it has in flight."""
    moves = last_moves(group.id)
    return Consumers(
        group=group,
        in_flight=up_to(Receipt.objects.filter(group_id=group.id), IN_FLIGHT_LIMIT),
        readings=readings(group, moves),
        partial=len(moves) == QUEUES,
    )


def last_moves(reader_id: int) -> dict[queues.Queue, Progress]:
    """The latest move of a reader in each of its queues.

    A hop along the primary key from queue to queue, from the end: the ledger between them is never read.
    """
    moves: dict[queues.Queue, Progress] = {}
    ledger = Progress.objects.filter(reader_id=reader_id).order_by("-topic_id", "-queue_id", "-move")
    latest = ledger.first()
    while latest is not None and len(moves) < QUEUES:
        moves[latest.topic_id, latest.queue_id] = latest
        before_this_queue = (reader_id, latest.topic_id, latest.queue_id, -1, -1)
        latest = ledger.filter(pk__lt=before_this_queue).first()
    return moves


def readings(group: ConsumerGroup, moves: dict[queues.Queue, Progress]) -> list[Reading]:
    """Where a group stands in every queue of every topic it has begun to read."""
    topics = Topic.objects.filter(id__in={topic for topic, _ in moves}).order_by("name")
    own = [(topic, queue) for topic in topics for queue in range(topic.queues)][:QUEUES]
    reached = queues.bounds((topic.id, queue) for topic, queue in own)
    return [
        reading(group, topic, queue, reached[topic.id, queue], moves.get((topic.id, queue))) for topic, queue in own
    ]


def reading(group: ConsumerGroup, topic: Topic, queue: int, bounds: queues.Bounds, move: Progress | None) -> Reading:
    """Where a group stands in one queue."""
    if move is not None:
        return Reading(topic.name, queue, move.next_offset, bounds, move.moved_at)
    start = bounds.min_offset if group.start_at == "earliest" else bounds.max_offset
    return Reading(topic.name, queue, start, bounds, None)
