"""Retention: drops segments whose time is over, the oldest first, and no message that a row still needs.

The message of an entry lies in the entry's segment or in the segment before. So the queues of a segment are dropped
together with the log of the segment before it, in this order: the other tables partitioned by segment, then the
entries, and when no statement can read the entries any more, the log that only these entries needed. So an entry always
has its message.
"""

from itertools import takewhile

import structlog

from store.db import connections
from store.db.connections import Connection
from store.db.statements import Statement
from store.naming import topics
from store.rows import ExpiringSegment
from store.segments import exports, log, partitions

logger = structlog.stdlib.get_logger(__name__)

CARRY_POSITIONS = Statement(__file__, "carry_positions")
FIND_EXPIRING_SEGMENTS = Statement(__file__, "find_expiring_segments", ExpiringSegment)
FIND_LEAVING_SEGMENT = Statement(__file__, "find_leaving_segment", maybe=int)
FIND_UNRELEASED = Statement(__file__, "find_unreleased", one=int)
RAISE_FLOORS = Statement(__file__, "raise_floors")

LOG = "commit_log"
ENTRIES = "consume_queue"


def limits(reserved_hours: float) -> dict[str, object]:
    """The parameters of FIND_EXPIRING_SEGMENTS, from the settings."""
    return {"reserved_seconds": reserved_hours * 3600, **exports.awaited()}


async def drop_old(connection: Connection, reserved_hours: float) -> list[int]:
    """Drops segments that have been closed for longer than `reserved_hours` of the broker and of their topics.

    Returns the ids of the dropped segments. A topic's `reserved_hours` can only lengthen the life of a segment with
    entries of the topic. All later segments then also live longer, because segments are dropped in order. With
    RETAIN_UNTIL_EXPORTED a segment that no export holds waits for an export, as long as there is room.

    Raises psycopg's LockNotAvailable if a reader takes too long.
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
    """The segment whose log is dropped next. Messages up to it that a row needs must be appended again."""
    [segment_id] = await connections.read(FIND_LEAVING_SEGMENT)
    return segment_id


async def _drop_queues(connection: Connection, segment_id: int) -> bool:
    """Drops all partitions of a segment except the log, the entries last, unless a delay level has entries in it."""
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
    """Carries the readers' positions from a segment that is dropped to the open segment, which must stay open
    meanwhile.
    """
    open_id, _ = await log.join(connection)
    try:
        await connections.execute(connection, CARRY_POSITIONS, {"segment_id": open_id, "from_segment_id": segment_id})
    except BaseException:
        await connection.rollback()
        raise
    await connection.commit()


async def _drop_log(connection: Connection, segment_id: int) -> bool:
    """Drops the log of a segment, its last partition, unless a row still needs the log."""
    if holders := await partitions.holders_of_log(connection, segment_id):
        logger.info("the log of a segment waits for rows that need it", segment=segment_id, tables=holders)
        return False
    # A batch may have read a log position before the message was appended again, so wait for all batches under way.
    async with log.exclusive(connection):
        pass
    for partition in await partitions.of_segment(connection, segment_id):
        if partition.state != "missing":
            await partitions.drop(connection, partition)
    await log.turn(connection, segment_id, "closed", "dropped")
    logger.info("a segment is dropped", segment=segment_id)
    return True
