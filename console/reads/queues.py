"""Queues: how far they reach, and the entries that came last."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from console.reads import messages
from store.models import CommitLog, ConsumeQueue, QueueFloor

# A queue: topic id and queue id.
Queue = tuple[int, int]

ENTRIES = 50
# One look at the end of each queue, joined to one statement; 64 of them took 28 ms over 8 segments.
QUEUES_PER_STATEMENT = 64


@dataclass(frozen=True)
class Bounds:
    """How far a queue reaches: its lowest offset, the next to be written, and when the last entry came."""

    min_offset: int = 0
    max_offset: int = 0
    last_stored_at: datetime | None = None

    @property
    def entries(self) -> int:
        """How many entries the queue holds: offsets are dense."""
        return self.max_offset - self.min_offset


@dataclass(frozen=True)
class Entry:
    """An entry of a queue with the message it makes visible (None: its segment was dropped)."""

    queue_offset: int
    entered_at: datetime
    reconsume_times: int
    message: CommitLog | None


def bounds(queues: Iterable[Queue]) -> dict[Queue, Bounds]:
    """How far each of these queues reaches."""
    wanted = list(queues)
    floors = lowest(wanted)
    ends = {queue: (offset + 1, at) for queue, offset, at in last_entries(wanted)}
    return {queue: reach(floors.get(queue, 0), ends.get(queue)) for queue in wanted}


def reach(floor: int, end: tuple[int, datetime] | None) -> Bounds:
    """The bounds of a queue from its floor and its last entry; an empty one goes on where it was cut."""
    return Bounds(floor, *end) if end else Bounds(floor, floor)


def lowest(queues: list[Queue]) -> dict[Queue, int]:
    """The lowest offset of each queue of which retention has dropped something."""
    topics = {topic for topic, _ in queues}
    floors = QueueFloor.objects.filter(topic_id__in=topics).values_list("topic_id", "queue_id", "min_offset")
    return {(topic, queue): offset for topic, queue, offset in floors}


def last_entries(queues: list[Queue]) -> Iterator[tuple[Queue, int, datetime]]:
    """The last entry of each queue that has one."""
    for start in range(0, len(queues), QUEUES_PER_STATEMENT):
        first, *others = [last_entry(*queue) for queue in queues[start : start + QUEUES_PER_STATEMENT]]
        for topic, queue, offset, at in first.union(*others, all=True):
            yield (topic, queue), offset, at


def last_entry(topic_id: int, queue_id: int):  # type: ignore[no-untyped-def]  # the type of values_list has no name
    """The entry at the end of a queue."""
    entries = ConsumeQueue.objects.filter(topic_id=topic_id, queue_id=queue_id).order_by("-queue_offset")
    return entries.values_list("topic_id", "queue_id", "queue_offset", "entered_at")[:1]


def newest(topic_id: int, queue_id: int, below: int | None = None) -> list[Entry]:
    """The newest entries of a queue, or those below an offset, the latest first."""
    entries = ConsumeQueue.objects.filter(topic_id=topic_id, queue_id=queue_id).order_by("-queue_offset")
    if below is not None:
        entries = entries.filter(queue_offset__lt=below)
    rows = list(entries[:ENTRIES])
    heads = messages.heads((row.log_segment, row.log_offset) for row in rows)
    return [
        Entry(row.queue_offset, row.entered_at, row.reconsume_times, heads.get((row.log_segment, row.log_offset)))
        for row in rows
    ]
