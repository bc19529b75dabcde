"""Progress: the next offset of each reader in each queue, the locks for moving it, and the lag."""

from collections.abc import Iterable, Sequence

from store.commit.batch import Batch
from store.db import connections, sync
from store.db.locks import TAKE_LOCKS
from store.db.statements import Statement
from store.queues import Queue
from store.rows import Head, Lag, PositionRow, TriedLock

DELETE_PROGRESS = Statement(__file__, "delete_progress", one=int)
FIND_LAGS = Statement(__file__, "find_lags", Lag)
FIND_POSITIONS = Statement(__file__, "find_positions", PositionRow)
FIND_READERS = Statement(__file__, "find_readers", one=int)
INSERT_PROGRESS = Statement(__file__, "insert_progress")
READ_HEADS = Statement(__file__, "read_heads", Head)
RECORD_MOVES = Statement(__file__, "record_moves")
TRY_LOCK_READERS = Statement(__file__, "try_lock_readers", TriedLock)

# The scheduler, the reader that releases delay levels. Any other reader is a consumer group.
SCHEDULER = 0
# In the key of a lock, this number stands for all queues of the topic; no queue has this number.
WHOLE_TOPIC = 0x3FFFF
# The most queues for the lag of one reader; 1,000 queues take some 60 ms. Further queues are left out.
MAX_QUEUES = 2000
# The most queues for the lags of several readers together.
MAX_LAGS = 10_000
# The most bytes of properties that one batch reads for its filters. One entry is always read; it has 16 KiB at most.
MAX_HEAD_BYTES = 1024 * 1024
# The most rows of deleted readers that one statement deletes. The next tick of beat deletes further rows.
MAX_DELETED = 5000


def locks(reader_id: int, queues: Iterable[Queue]) -> set[int]:
    """The keys of the advisory locks that a transaction must hold to move the reader in these queues."""
    return {_lock_key(reader_id, topic_id, queue_id) for topic_id, queue_id in queues}


def topic_lock(reader_id: int, topic_id: int) -> int:
    """The key of the advisory lock that a transaction must hold to move the reader in any queue of the topic.

    One lock instead of one for each queue: 40 groups that receive from 1,024 queues at once would take more locks than
    PostgreSQL has room for (some 6,400 by default).
    """
    return _lock_key(reader_id, topic_id, WHOLE_TOPIC)


async def lock(batch: Batch, reader_id: int, queues: Iterable[Queue]) -> None:
    """Takes the locks of these queues in the middle of a transaction."""
    await take(batch, locks(reader_id, queues))


async def take(batch: Batch, keys: Iterable[int]) -> None:
    """Takes the locks with these keys in the middle of a transaction."""
    await batch.read(TAKE_LOCKS, {"keys": sorted(keys)})


async def try_lock(batch: Batch, reader_id: int, queues: Sequence[Queue]) -> list[Queue]:
    """Tries to take each of the locks of these queues, without waiting. Returns the queues whose lock it got."""
    by_key = {_lock_key(reader_id, topic_id, queue_id): (topic_id, queue_id) for topic_id, queue_id in queues}
    rows = await batch.read(TRY_LOCK_READERS, {"keys": sorted(by_key)})
    return [by_key[row.key] for row in rows if row.taken]


def _lock_key(reader_id: int, topic_id: int, queue_id: int) -> int:
    """The key of a lock, 64 bits for a reader and a queue. Two pairs with the same key only wait for each other."""
    return (reader_id & 0xFFFFF) << 42 | (topic_id & 0xFFFFFF) << 18 | (queue_id & 0x3FFFF)


async def positions(batch: Batch, reader_id: int, queues: Sequence[Queue]) -> Sequence[PositionRow]:
    """The next offset of the reader in each queue. `begun`: whether the reader has read any queue of the topic."""
    return await batch.read(FIND_POSITIONS, {"reader_id": reader_id, **_columns(queues)})


async def heads(
    batch: Batch, queues: Sequence[Queue], from_offsets: Sequence[int], max_entries: Sequence[int]
) -> Sequence[Head]:
    """The heads of entries of several queues, for a filter: from an offset and up to a number for each queue.

    The queues are read in the given order, until MAX_HEAD_BYTES of properties are read.
    """
    limits = {"from_offset": list(from_offsets), "max_entries": list(max_entries), "max_bytes": MAX_HEAD_BYTES}
    return await batch.read(READ_HEADS, {**limits, **_columns(queues)})


def _columns(queues: Sequence[Queue]) -> dict[str, object]:
    return {"topic_id": [topic for topic, _ in queues], "queue_id": [queue for _, queue in queues]}


def move(batch: Batch, reader_id: int, queue: Queue, move_no: int, next_offset: int) -> None:
    """Adds a row with the reader's next offset: the move that follows the move read under the lock."""
    topic_id, queue_id = queue
    row = {"topic_id": topic_id, "queue_id": queue_id, "move": move_no, "next_offset": next_offset}
    batch.insert(INSERT_PROGRESS, {"reader_id": reader_id, **row})


def lags(reader_ids: Sequence[int]) -> dict[int, list[Lag]]:
    """The lags of these readers in each queue of each topic that they have begun to read, by topic.

    At most MAX_QUEUES queues for one reader, MAX_LAGS for several. `next_entered_at`: the time of the reader's next
    entry; None if there is no next entry. A queue without a move is newer than the reader's first read, and is read
    from its first entry.
    """
    limit = MAX_QUEUES if len(reader_ids) == 1 else MAX_LAGS
    found: dict[int, list[Lag]] = {reader_id: [] for reader_id in reader_ids}
    for row in sync.read(FIND_LAGS, {"reader_ids": list(reader_ids), "max_queues": limit}) if reader_ids else ():
        found[row.reader_id].append(row)
    return found


async def readers() -> set[int]:
    """The ids of all readers that have progress, except the scheduler."""
    return set(await connections.read(FIND_READERS))


async def forget(reader_ids: Iterable[int]) -> int:
    """Deletes the progress of these readers, at most MAX_DELETED rows of each segment. Returns the number of rows."""
    limits = {"reader_ids": list(reader_ids), "max_rows": MAX_DELETED}
    return len(await connections.read(DELETE_PROGRESS, limits))
