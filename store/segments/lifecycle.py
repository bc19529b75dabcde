"""The life of segments: made ready, opened when the segment before is full, closed, dropped after the retention.

This module keeps no state: each step starts from the segments' rows and PostgreSQL's catalog, so a step may run twice,
on two workers at once, or be killed anywhere. Sends wait only for the moment of a roll, and no send fails because of
it: while no next segment is ready, the open segment stays open.
"""

from collections.abc import Awaitable

import psycopg
import structlog
from django.conf import settings

from store.db import connections
from store.db.connections import Connection
from store.db.statements import Statement
from store.rows import Maintenance, OpenSegmentState
from store.segments import exports, log, partitions, retention

logger = structlog.stdlib.get_logger(__name__)

ADD_SEGMENT = Statement(__file__, "add_segment")
LOOK_AT_SEGMENTS = Statement(__file__, "look_at_segments", OpenSegmentState)
TAKE_MAINTENANCE = Statement(__file__, "take_maintenance", Maintenance)

# Only the session that holds this advisory lock maintains the segments.
MAINTENANCE_LOCK = 0x6D71_7365_6700
# How long a step waits for a lock; after that it is left to the next tick. Writers wait for no step except the roll.
# PostgreSQL ends an autovacuum that blocks a step after a second (deadlock_timeout).
LOCK_TIMEOUT = "3s"
STATEMENT_TIMEOUT = "5min"


async def run(late_seconds: float = 0) -> None:
    """Executes the steps that are due for the segments: one tick.

    With `late_seconds`, as the fallback for a missing beat: only if a step has been due for this time. Raises
    SystemBusy when the database is away.
    """
    hours_late = late_seconds / 3600
    if not await _is_due(hours_late):
        return
    try:
        connection = await maintain()
    except psycopg.OperationalError as problem:
        raise connections.away(problem) from problem
    if connection is None:
        return
    async with connection:
        if not await _attempt("prepare", prepare(connection)):
            await _attempt("roll", roll(connection, settings.SEGMENT_HOURS, settings.SEGMENT_MAX_MESSAGES))
        await _attempt("drop", retention.drop_old(connection, settings.RESERVED_HOURS))
        await _attempt("analyze", partitions.analyze(connection))


async def _is_due(hours_late: float) -> bool:
    """Whether a step is due, by two cheap reads, because most ticks find no step."""
    [seen] = await connections.read(LOOK_AT_SEGMENTS)
    if seen.ready_id is None and seen.open_hours >= hours_late:
        return True
    if _is_full(seen, settings.SEGMENT_HOURS + hours_late, settings.SEGMENT_MAX_MESSAGES):
        return True
    rows = await connections.read(
        retention.FIND_EXPIRING_SEGMENTS, retention.limits(settings.RESERVED_HOURS + hours_late)
    )
    return bool(rows) and rows[0].is_over and not await exports.must_wait(rows[0])


async def _attempt(name: str, step: Awaitable[object]) -> object:
    """Runs a step. If the step waits in vain for a lock, the next tick repeats it, and the other steps still run."""
    try:
        return await step
    except psycopg.OperationalError as problem:
        logger.warning("a step waits for the next tick", step=name, reason=str(problem).partition("\n")[0])
        return None


async def maintain(lock_timeout: str = LOCK_TIMEOUT) -> Connection | None:
    """A connection that holds the lock of maintenance until it is closed; None while another session holds it."""
    connection = await connections.connect("mqbroker-segments", direct=True)
    connection.is_patient = True
    taken = False
    try:
        limits = {"lock_timeout": lock_timeout, "statement_timeout": STATEMENT_TIMEOUT}
        [row] = await connections.execute(connection, TAKE_MAINTENANCE, {"key": MAINTENANCE_LOCK, **limits})
        taken = row.taken
    finally:
        if not taken:
            await connection.close()
    return connection if taken else None


async def prepare(connection: Connection) -> bool:
    """Makes the segment after the open one ready: creates its partitions, then its row.

    Returns whether it created partitions. Then the roll is left to the next tick, because a session that is just
    building its list of partitions must be done before they are announced.
    """
    [seen] = await connections.execute(connection, LOOK_AT_SEGMENTS)
    segment_id = seen.id + 1
    made = await partitions.make(connection, segment_id)
    if seen.ready_id is None:
        await connections.execute(connection, ADD_SEGMENT, {"segment_id": segment_id})
    return made > 0


async def roll(connection: Connection, max_hours: float, max_messages: int) -> int | None:
    """Closes the open segment if it is older or larger than the limits. Returns the id of the segment that it opens.

    Raises psycopg's LockNotAvailable if a writer does not finish in time; then nothing has changed.
    """
    [seen] = await connections.execute(connection, LOOK_AT_SEGMENTS)
    if seen.ready_id is None or not _is_full(seen, max_hours, max_messages):
        return None
    async with connection.transaction():
        # This step comes before the log is held, so that a wait for a lock of a table stops no writer.
        await partitions.announce(connection, seen.ready_id)
        async with log.exclusive(connection):
            # A new statement sees the rows of the last writers, and whether another worker has already done the roll.
            [seen] = await connections.execute(connection, LOOK_AT_SEGMENTS)
            ready_id = seen.ready_id
            if ready_id is None or not _is_full(seen, max_hours, max_messages):
                return None
            if not await _has_partitions(connection, ready_id):
                return None
            await log.turn(connection, seen.id, "open", "closed")
            await log.turn(connection, ready_id, "ready", "open")
    logger.info("a segment is closed", segment=seen.id, messages=seen.messages, next_segment=ready_id)
    return ready_id


def _is_full(seen: OpenSegmentState, max_hours: float, max_messages: int) -> bool:
    return seen.open_hours >= max_hours or seen.messages > max_messages


async def _has_partitions(connection: Connection, segment_id: int) -> bool:
    """Whether every table has a partition for the segment, also a table that a migration has added later."""
    return all(partition.state == "attached" for partition in await partitions.of_segment(connection, segment_id))
