"""Progress: how far each reader of a queue has come, its lag, and how a deleted reader leaves the table."""

from collections.abc import Iterable, Sequence

from store import log
from store.commit.batch import Batch
from store.db import connections, sync
from store.db.connections import Row
from store.db.statements import Statement
from store.rows import DeletedProgress, Head, Lag, PositionRow, ReaderId, TriedLock

DELETE_PROGRESS = Statement(__file__, "delete_progress", DeletedProgress)
FIND_LAGS = Statement(__file__, "find_lags", Lag)
FIND_POSITIONS = Statement(__file__, "find_positions", PositionRow)
FIND_READERS = Statement(__file__, "find_readers", ReaderId)
INSERT_PROGRESS = Statement(__file__, "insert_progress")
READ_HEADS = Statement(__file__, "read_heads", Head)
TRY_LOCK_READERS = Statement(__file__, "try_lock_readers", TriedLock)

SCHEDULER = 0
# Stands for all queues of a topic in the key of a lock: no queue has this number.
WHOLE_TOPIC = 0x3FFFF

MAX_ROWS_AT_ONCE = 5000

MAX_QUEUES = 2000


def locks(reader_id: int, queues: Iterable[tuple[int, int]]) -> set[int]:
    """The locks that make a transaction the only one that moves the reader in these (topic, queue) pairs."""
    return {_lock_key(reader_id, topic_id, queue_id) for topic_id, queue_id in queues}


def topic_lock(reader_id: int, topic_id: int) -> int:
    """The lock that makes a transaction the only one that moves the reader in any queue of the topic.

    One lock instead of one per queue: 40 groups that receive from 1,024 queues at once would take more locks than
    PostgreSQL has room for (some 6,400 by its default settings).
    """
    return _lock_key(reader_id, topic_id, WHOLE_TOPIC)


async def lock(batch: Batch, reader_id: int, queues: Iterable[tuple[int, int]]) -> None:
    """Takes `locks` in the middle of a transaction."""
    await take(batch, locks(reader_id, queues))


async def take(batch: Batch, keys: Iterable[int]) -> None:
    """Takes locks in the middle of a transaction."""
    await batch.read(log.TAKE_LOCKS, {"keys": sorted(keys)})


async def try_lock(batch: Batch, reader_id: int, queues: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same for those of the pairs in which nobody else moves the reader now; gives these, and waits for none."""
    pairs = {_lock_key(reader_id, topic_id, queue_id): (topic_id, queue_id) for topic_id, queue_id in queues}
    rows = await batch.read(TRY_LOCK_READERS, {"keys": sorted(pairs)})
    return [pairs[row.key] for row in rows if row.taken]


def _lock_key(reader_id: int, topic_id: int, queue_id: int) -> int:
    """A key of its own per reader and queue in 64 bits; two that share one only wait for each other."""
    return (reader_id & 0xFFFFF) << 42 | (topic_id & 0xFFFFFF) << 18 | (queue_id & 0x3FFFF)


async def positions(batch: Batch, reader_id: int, queues: Sequence[tuple[int, int]]) -> Sequence[Row]:
    """Per queue: next_offset and move (None where the reader has never read), min_offset and max_offset, and `begun`:
    whether the reader has read any queue of the topic.
    """
    return await batch.read(FIND_POSITIONS, {"reader_id": reader_id, **_columns(queues)})


async def heads(
    batch: Batch, queues: Sequence[tuple[int, int]], from_offsets: Sequence[int], max_entries: Sequence[int]
) -> Sequence[Row]:
    """What a filter judges of the entries of several queues, each from its offset on and so many at most."""
    asked = {"from_offset": list(from_offsets), "max_entries": list(max_entries), **_columns(queues)}
    return await batch.read(READ_HEADS, asked)


def move(batch: Batch, reader_id: int, queue: tuple[int, int], move_no: int, next_offset: int) -> None:
    """Has the reader's new position recorded."""
    batch.insert(
        INSERT_PROGRESS,
        {
            "reader_id": reader_id,
            "topic_id": queue[0],
            "queue_id": queue[1],
            "move": move_no,
            "next_offset": next_offset,
        },
    )


def _columns(queues: Sequence[tuple[int, int]]) -> dict[str, object]:
    return {"topic_id": [topic for topic, _ in queues], "queue_id": [queue for _, queue in queues]}


async def readers() -> set[int]:
    """Whoever has read anything, the scheduler left out."""
    return {row.reader_id for row in await connections.read(FIND_READERS)}


async def forget(reader_ids: Iterable[int]) -> int:
    """Deletes rows of these readers, MAX_ROWS_AT_ONCE of each segment at most; gives their number."""
    asked = {"reader_ids": list(reader_ids), "max_rows": MAX_ROWS_AT_ONCE}
    return len(await connections.read(DELETE_PROGRESS, asked))


def of(reader_id: int) -> Sequence[Row]:
    """Per queue of the topics the reader has begun to read: topic_id, topic, queue_id, next_offset, min_offset,
    max_offset, lag, moved_at and next_entered_at (since when its next entry is there, None without one).

    A queue without a move is newer than that, and is read from its first entry. MAX_QUEUES queues at most, by topic.
    """
    return sync.read(FIND_LAGS, {"reader_id": reader_id, "max_queues": MAX_QUEUES})
