"""Stats of the store: the number of stored and of visible messages, in all and lately, by differences of offsets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count
from django.db.models.functions import Now

from store import queues
from store.cells import cells
from store.db import sync
from store.db.statements import Statement
from store.models import Segment, Topic
from store.naming import namespaces, topics
from store.queues import QueueBounds
from store.rows import EntriesSince, LogOffsetsSince, TopicEntries

LOG_OFFSETS_SINCE = Statement(__file__, "log_offsets_since", LogOffsetsSince)
ENTRIES_SINCE = Statement(__file__, "entries_since", EntriesSince)
EVER_TAKEN = Statement(__file__, "ever_taken", one=int)
ENTRIES_BY_TOPIC = Statement(__file__, "entries_by_topic", TopicEntries)

# The most queues that are read; 1,000 queues with entries of the last hour take some 60 ms.
MAX_QUEUES = 5000
MAX_TOPICS = 2000


@dataclass(frozen=True, slots=True)
class Stored:
    """The number of rows in the store (`kept`), and of rows added `within` each window, by the window's seconds.

    The numbers are differences of offsets: a failed write leaves a gap in log offsets, which counts, and rows of
    overlapping transactions may count on either side of a window's edge.
    """

    kept: int
    within: dict[int, int]


@dataclass(frozen=True, slots=True)
class Visible:
    """The entries of all topics together, and the entries of the topic of discarded transactions."""

    entries: Stored
    discarded: Stored


def messages(windows: Sequence[int]) -> Stored:
    """The number of stored messages, including half messages."""
    found = cells.ask(lambda: sync.read(LOG_OFFSETS_SINCE, {"seconds": list(windows)})).values()
    return Stored(
        kept=sum(rows[0].next_offset - rows[0].lowest for rows in found),
        within={
            rows[0].seconds: sum(row.next_offset - row.since_offset for row in rows)
            for rows in zip(*found, strict=True)
        },
    )


def entries(windows: Sequence[int], namespace: str | None = None) -> Visible:
    """The entries of all queues except delay levels', of at most MAX_QUEUES queues.

    For a namespace only its own topics, without the topic of discarded transactions.
    """
    rows = sync.read(
        ENTRIES_SINCE,
        {
            "seconds": list(windows),
            "schedule_topic": topics.SCHEDULE,
            "discarded_topic": topics.DISCARDED,
            "starts": namespaces.starts(namespace),
            "max_queues": MAX_QUEUES,
        },
    )
    return Visible(
        entries=Stored(
            kept=rows[0].kept - rows[0].discarded_kept,
            within={row.seconds: row.entries - row.discarded for row in rows},
        ),
        discarded=Stored(rows[0].discarded_kept, {row.seconds: row.discarded for row in rows}),
    )


def ever_taken(sequence: str) -> int:
    """The numbers that this cell has ever taken from a sequence, including the gaps of failed writes."""
    return sync.read(EVER_TAKEN, {"sequence": sequence})[0]


def ever_stored() -> int:
    """The number of messages ever stored, including the gaps of failed writes."""
    return sum(cells.ask(lambda: ever_taken("commit_log_offset")).values())


def entries_by_topic(namespace: str | None = None) -> dict[str, int]:
    """How many entries each topic ever had, for the first MAX_TOPICS topics by name, of all or a namespace."""
    rows = sync.read(ENTRIES_BY_TOPIC, {"max_topics": MAX_TOPICS, "starts": namespaces.starts(namespace)})
    return {row.topic: row.entries for row in rows}


def segments() -> dict[str, int]:
    """The number of segments by state."""
    rows = Segment.objects.order_by().values_list("state").annotate(segments=Count("*"))
    return dict(rows)


def now() -> datetime:
    """The database's time, from which ages and due times are counted. Read with a segment, as one always exists."""
    time: datetime = Segment.objects.values_list(Now(), flat=True)[:1].get()
    return time


def bounds(of_queues: Iterable[queues.Queue]) -> Sequence[QueueBounds]:
    """The bounds of these queues, in the same order."""
    return sync.read(queues.QUEUE_BOUNDS, queues.columns(of_queues))


@dataclass(frozen=True, slots=True)
class Held:
    """The number of entries that a topic's queues hold. `partial`: the topic has more queues than were read."""

    topic: Topic
    entries: int
    last_stored_at: datetime | None
    partial: bool


def held_by(of_topics: Sequence[Topic], max_queues: int) -> list[Held]:
    """How many entries each of these topics holds in its first `max_queues` queues."""
    wanted = [(topic.id, queue_id) for topic in of_topics for queue_id in range(min(topic.queues, max_queues))]
    by_topic: dict[int, list[QueueBounds]] = {topic.id: [] for topic in of_topics}
    for read in cells.ask(lambda: bounds(wanted)).values():
        for queue in read:
            by_topic[queue.topic_id].append(queue)
    return [_held(topic, by_topic[topic.id], max_queues) for topic in of_topics]


def _held(topic: Topic, read: Sequence[QueueBounds], max_queues: int) -> Held:
    times = [queue.last_stored_at for queue in read if queue.last_stored_at is not None]
    entries = sum(queue.entries for queue in read)
    return Held(topic, entries, max(times, default=None), topic.queues > max_queues)


def closed_topics(count: int, namespace: str | None = None) -> list[Topic]:
    """The first `count` topics that take no messages before a future time, in the order of these times."""
    closed = Topic.objects.filter(namespaces.within(namespace), sends_from__gt=Now())
    return list(closed.order_by("sends_from")[:count])
