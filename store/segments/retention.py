"""Retention: drops segments whose time is over, the oldest first, and no message that a row still needs.

An entry points into its own segment or the one before. So the queues of a segment are dropped with the log of the
segment before it, in this order: the other tables partitioned by segment, then the entries, and when no statement can
read them any more, the log that only they needed. At no moment is there an entry without its message.
"""

from itertools import takewhile
from typing import NamedTuple

import structlog

from store.db import connections
from store.db.connections import Connection
from store.db.statements import Statement
from store.naming import topics
from store.segments import exports, log, partitions
from store.segments.rows import ExpiringSegment


class UnreleasedQueue(NamedTuple):
    """The queue of a delay level with entries that are not released."""

    queue_id: int


class LeavingSegment(NamedTuple):
    """The segment whose log is dropped next, or NULL."""

    segment_id: int | None


logger = structlog.stdlib.get_logger(__name__)

CARRY_POSITIONS = Statement(__file__, "carry_positions")
FIND_EXPIRING_SEGMENTS = Statement(__file__, "find_expiring_segments", ExpiringSegment)
FIND_LEAVING_SEGMENT = Statement(__file__, "find_leaving_segment", LeavingSegment)
FIND_UNRELEASED = Statement(__file__, "find_unreleased", UnreleasedQueue)
MARK_DROPPED = Statement(__file__, "mark_dropped")
RAISE_FLOORS = Statement(__file__, "raise_floors")

LOG = "commit_log"
ENTRIES = "consume_queue"


def limits(reserved_hours: float) -> dict[str, object]:
    """The parameters of FIND_EXPIRING_SEGMENTS."""
    return {"reserved_seconds": reserved_hours * 3600, **exports.awaited()}


async def drop_old(connection: Connection, reserved_hours: float) -> list[int]:
    """Drops what has been closed for longer than `reserved_hours` and than its topics' own; returns the segments done.

    A topic's `reserved_hours` lengthens the life of every segment that holds entries of it, and so of all later ones:
    segments are dropped in order. It never shortens one. Where RETAIN_UNTIL_EXPORTED is set, a segment that no export
    holds waits for one, as long as there is room.

    Raises psycopg's LockNotAvailable when a reader takes too long.
    """
    rows = await connections.execute(connection, FIND_EXPIRING_SEGMENTS, limits(reserved_hours))
    done: list[int] = []
    for row in takewhile(lambda row: row.is_over, rows):
        if await exports.must_wait(row):
            logger.info("a segment waits for its export", segment=row.id)
            break
        if row.awaits_export:
            await exports.give_up(connection, row.id)
        if not await _drop_queues(connection, row.id):
            break
        if row.before_id is not None and not await _drop_log(connection, row.before_id):
            break
        done.append(row.id)
    return done


async def leaving() -> int | None:
    """The segment whose log is dropped next, with all older ones: bodies there that a row needs are appended again."""
    [row] = await connections.read(FIND_LEAVING_SEGMENT)
    return row.segment_id


async def _drop_queues(connection: Connection, segment_id: int) -> bool:
    """Drops all of a segment but its log, unless a delay level waits in it. The entries are last: they mark the end."""
    parts = [part for part in await partitions.of_segment(connection, segment_id) if part.state != "missing"]
    going = sorted((part for part in parts if part.table_name != LOG), key=lambda part: part.table_name == ENTRIES)
    if not going:
        return True
    if await connections.execute(
        connection, FIND_UNRELEASED, {"segment_id": segment_id, "schedule_topic": topics.SCHEDULE}
    ):
        logger.info("a segment waits for entries of delay levels that are not released", segment=segment_id)
        return False
    await _carry_positions(connection, segment_id)
    await connections.execute(connection, RAISE_FLOORS, {"segment_id": segment_id})
    for partition in going:
        await partitions.drop(connection, partition)
    logger.info("the queues of a segment are dropped", segment=segment_id)
    return True


async def _carry_positions(connection: Connection, segment_id: int) -> None:
    """As a writer of the log: the rows are added to the open segment, which must stay open."""
    open_id, _ = await log.join(connection)
    try:
        await connections.execute(connection, CARRY_POSITIONS, {"segment_id": open_id, "from_segment_id": segment_id})
    except BaseException:
        await connection.rollback()
        raise
    await connection.commit()


async def _drop_log(connection: Connection, segment_id: int) -> bool:
    """Drops a segment's log, unless a row still needs it. Nothing of the segment is left then."""
    if holders := await partitions.holders_of_log(connection, segment_id):
        logger.info("the log of a segment waits for rows that need it", segment=segment_id, tables=holders)
        return False
    # A batch may have read a log position before the message was appended again: all such batches end first.
    async with log.exclusive(connection):
        pass
    for partition in await partitions.of_segment(connection, segment_id):
        if partition.state != "missing":
            await partitions.drop(connection, partition)
    await connections.execute(connection, MARK_DROPPED, {"segment_id": segment_id})
    logger.info("a segment is dropped", segment=segment_id)
    return True
