"""Consume queues: the entries that make stored messages visible, at offsets without gaps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from store.db import connections
from store.db.connections import Connection
from store.db.statements import Statement
from store.messages import MessageRow
from store.process.answer_budget import Hold
from store.rows import Enqueued, MessageOffsets


class EntryRow(MessageRow, gc=False):
    """An entry of a queue with its message, and the total bytes of the bodies before it on its page."""

    entry_queue_id: int
    queue_offset: int
    reconsume_times: int
    bytes_before: int


class QueueBounds(NamedTuple):
    """The lowest offset that a queue still holds, its next offset, and the time of its newest entry."""

    topic_id: int
    queue_id: int
    min_offset: int
    max_offset: int
    last_stored_at: datetime | None

    @property
    def entries(self) -> int:
        """The number of entries that the queue holds: a difference, because offsets have no gaps."""
        return self.max_offset - self.min_offset


ENQUEUE_ENTRIES = Statement(__file__, "enqueue_entries", Enqueued)
ENQUEUE_FIRST_ENTRIES = Statement(__file__, "enqueue_first_entries", Enqueued)
ENTER_NUMBERED = Statement(__file__, "enter_numbered")
LOCK_QUEUES = Statement(__file__, "lock_queues")
QUEUE_BOUNDS = Statement(__file__, "queue_bounds", QueueBounds)
READ_ENTRIES = Statement(__file__, "read_entries", EntryRow)
SEND_MESSAGES = Statement(__file__, "send_messages", MessageOffsets)
SKIP_STORED = Statement(__file__, "skip_stored", one=str)

# A queue: the id of its topic, and its number.
Queue = tuple[int, int]


@dataclass(slots=True)
class Entry:
    """The row that makes a stored message visible in a queue. `enqueue` sets its queue offset.

    In a schedule queue `tags_code` is the time of delivery in ms, and the real_ fields are the queue for that time.
    `due_at` is the time of the timer whose release adds the entry.
    """

    topic_id: int
    queue_id: int
    log_segment: int
    log_offset: int
    tags_code: int
    reconsume_times: int = 0
    real_topic_id: int | None = None
    real_queue_id: int | None = None
    real_tags_code: int | None = None
    due_at: datetime | None = None
    queue_offset: int = -1


COLUMNS = (
    "topic_id",
    "queue_id",
    "log_segment",
    "log_offset",
    "tags_code",
    "reconsume_times",
    "real_topic_id",
    "real_queue_id",
    "real_tags_code",
    "due_at",
)


async def enqueue(connection: Connection, segment_id: int, entries: Sequence[Entry]) -> None:
    """Adds the entries to their queues in the given order, and sets the queue offset of each entry.

    The queues are locked in sorted order, and are the last locks of the transaction.
    """
    queues = sorted({(entry.topic_id, entry.queue_id) for entry in entries})
    locked = {"topic_id": [topic for topic, _ in queues], "queue_id": [queue for _, queue in queues]}
    # psycopg's pipeline mode is not used here: in it the server does not limit how long the transaction is idle, and a
    # process that is stopped here would hold its locks for ever.
    await connections.execute(connection, LOCK_QUEUES, locked)
    _number(entries, await connections.execute(connection, ENQUEUE_ENTRIES, _columns(segment_id, queues, entries)))
    # After a roll each queue has no entry in the new segment yet.
    if first := [entry for entry in entries if entry.queue_offset < 0]:
        queues = sorted({(entry.topic_id, entry.queue_id) for entry in first})
        _number(
            first, await connections.execute(connection, ENQUEUE_FIRST_ENTRIES, _columns(segment_id, queues, first))
        )


def _columns(segment_id: int, queues: list[tuple[int, int]], entries: Sequence[Entry]) -> dict[str, object]:
    return {
        "segment_id": segment_id,
        "locked_topic_id": [topic for topic, _ in queues],
        "locked_queue_id": [queue for _, queue in queues],
        **{name: [getattr(entry, name) for entry in entries] for name in COLUMNS},
    }


def _number(entries: Sequence[Entry], rows: Sequence[Enqueued]) -> None:
    """Sets the queue offsets of entries: the n-th row of a queue belongs to its n-th entry."""
    offsets: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        offsets.setdefault((row.topic_id, row.queue_id), []).append(row.queue_offset)
    following = {queue: iter(sorted(found)) for queue, found in offsets.items()}
    for entry in entries:
        if (entry.topic_id, entry.queue_id) in following:
            entry.queue_offset = next(following[entry.topic_id, entry.queue_id])


async def read(topic_id: int, queue_id: int, from_offset: int, max_entries: int, hold: Hold) -> Sequence[EntryRow]:
    """The entries of a queue from an offset on, with their messages, in order.

    At most `max_entries`, and as many as fit with their bodies into MAX_RECEIVE_BYTES and the room that the process has
    left for answers; at least one. The bytes count in `hold`: until the bodies are read, the bytes of a whole page.
    """
    await hold.room(may_be_small=True)
    most = hold.page()
    asked = {"topic_id": topic_id, "queue_id": queue_id, "from_offset": from_offset, "max_entries": max_entries}
    limits = {"max_bytes": most, "most_of_first": most if hold.is_small else None}
    rows = await connections.read(READ_ENTRIES, {**asked, **limits})
    if not rows and hold.is_small and (await bounds([(topic_id, queue_id)]))[0].max_offset > from_offset:
        hold.is_large = True
        return await read(topic_id, queue_id, from_offset, max_entries, hold)
    hold.set(sum(len(row.body) for row in rows))
    return rows


def of_topic(topic_id: int, count: int) -> list[Queue]:
    """The first `count` queues of a topic."""
    return [(topic_id, queue_id) for queue_id in range(count)]


def columns(of_queues: Iterable[Queue]) -> dict[str, object]:
    """The parameters of the statement QUEUE_BOUNDS for these queues."""
    pairs = list(of_queues)
    return {"topic_id": [topic_id for topic_id, _ in pairs], "queue_id": [queue_id for _, queue_id in pairs]}


async def bounds(of_queues: Iterable[Queue]) -> Sequence[QueueBounds]:
    """The bounds of these queues, in the given order."""
    return await connections.read(QUEUE_BOUNDS, columns(of_queues))
