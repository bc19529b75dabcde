"""Finds closed ranges, rows of the append-only tables that are final, and cuts them into slices for Spark's tasks.

These rows are final because writers only add rows after them. Writers share the lock of the log. The export holds this
lock alone while it takes one snapshot: no append is under way then, so each row at or below the snapshot's highest
offsets is final and can be read later, in pieces, by many sessions. Half messages can still change, so they are read by
the same snapshot: each transaction is either among its half messages or among its operations, never in both and never
in neither.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import psycopg

from analytics.connections import Connection, bind, connect, read
from analytics.errors import LogBusy
from analytics.rows import EntryBounds, SegmentBounds, SegmentState
from store.db.statements import Statement
from store.segments import log

EXPORT_SNAPSHOT = Statement(__file__, "export_snapshot", one=str)
TAKE_SNAPSHOT = Statement(__file__, "take_snapshot")
FIND_SEGMENTS = Statement(__file__, "find_segments", SegmentState)
LOCK_LOG = Statement(__file__, "lock_log")
UNLOCK_LOG = Statement(__file__, "unlock_log", one=bool)
SEGMENT_BOUNDS = Statement(__file__, "segment_bounds", SegmentBounds)
ENTRY_BOUNDS = Statement(__file__, "entry_bounds", EntryBounds)

# All statements are sent as one message: so the server holds the log only while it takes one snapshot, even if this
# process waits for a processor. The last statement takes the transaction's snapshot before it releases the lock, which
# the session has held until then.
QUIET = (
    f"BEGIN; SET LOCAL lock_timeout = '{log.EXCLUSIVE['lock_timeout']}'; {LOCK_LOG.text}; COMMIT; "
    f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {UNLOCK_LOG.text}"
) % {"key": log.APPENDERS_LOCK}

# 40 attempts last longer than the 20 s after which the server ends a session that is idle in a transaction.
TRIES = 40
PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets from `first` to `last`, both inclusive."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class QueueSpan:
    """A span of offsets of one queue in one segment."""

    topic_id: int
    queue_id: int
    span: Span


@dataclass(frozen=True, slots=True)
class ClosedSegment:
    """The final rows of one segment; a field is None if the segment has no rows of that table."""

    id: int
    state: str
    messages: Span | None
    operations: Span | None
    entries: Sequence[QueueSpan]


@dataclass(frozen=True, slots=True)
class ClosedRange:
    """The final rows of the whole log at the time `taken_at`, by the database's clock."""

    taken_at: datetime
    segments: Sequence[ClosedSegment]


@contextmanager
def quiet(conninfo: str) -> Iterator[tuple[Connection, str]]:
    """Opens a transaction whose snapshot was taken while no append was under way.

    Yields the connection, and the statement by which other sessions use the same snapshot. Writers wait only while the
    snapshot is taken, not for the time of the block. Raises LogBusy.
    """
    with connect(conninfo) as reader:
        # The text of the statement below has its own BEGIN, so psycopg must not add one.
        reader.autocommit = True
        _take_quiet_snapshot(reader)
        # The session gets this process's processors only now: while it holds the lock it may use any processor.
        bind(reader)
        yield reader, _sharing(reader)


def find(reader: Connection) -> ClosedRange:
    """The closed range at the snapshot of a quiet transaction."""
    segments = read(reader, FIND_SEGMENTS)
    return ClosedRange(segments[0].taken_at, [_closed(reader, segment) for segment in segments])


def _closed(reader: Connection, segment: SegmentState) -> ClosedSegment:
    parameters = {"segment_id": segment.id}
    [bounds] = read(reader, SEGMENT_BOUNDS, parameters)
    queues = read(reader, ENTRY_BOUNDS, parameters)
    return ClosedSegment(
        id=segment.id,
        state=segment.state,
        messages=_span(bounds.first_log_offset, bounds.last_log_offset),
        operations=_span(bounds.first_operation_id, bounds.last_operation_id),
        entries=[QueueSpan(row.topic_id, row.queue_id, Span(row.first_offset, row.last_offset)) for row in queues],
    )


def _span(first: int | None, last: int | None) -> Span | None:
    return None if first is None or last is None else Span(first, last)


def _sharing(connection: Connection) -> str:
    [name] = read(connection, EXPORT_SNAPSHOT)
    return psycopg.ClientCursor(connection).mogrify(TAKE_SNAPSHOT.sql(), {"snapshot": name})


def _take_quiet_snapshot(reader: Connection) -> None:
    for _ in range(TRIES):
        try:
            reader.execute(QUIET.encode())
        except psycopg.errors.LockNotAvailable:
            reader.rollback()
            time.sleep(PAUSE_SECONDS)
        else:
            return
    raise LogBusy(
        f"A writer of the log has held it for {TRIES} tries of {log.EXCLUSIVE['lock_timeout']}: look in "
        "pg_stat_activity for a session that idles in a transaction, end it, and export again."
    )


# So small that an export of 200,000 messages uses two cores, so large that reading takes longer than connecting.
SLICE_ROWS = 100_000
# A limit for topics with many small queues: each queue costs one index probe and makes the WHERE clause longer.
QUEUES_PER_SLICE = 100


def slices_of_span(column: str, segment_id: int, span: Span | None, rows: int = SLICE_ROWS) -> list[str]:
    """Clauses that select the rows of one segment whose `column` lies in the span, at most `rows` per clause."""
    pieces = [] if span is None else list(_cut(span, rows))
    return [f"segment_id = {segment_id:d} AND {column} BETWEEN {p.first:d} AND {p.last:d}" for p in pieces]


def slices_of_queues(segment_id: int, queues: Sequence[QueueSpan], rows: int = SLICE_ROWS) -> list[str]:
    """Clauses that together select the given entries of one segment, at most `rows` per clause."""
    return [f"segment_id = {segment_id:d} AND ({' OR '.join(gathered)})" for gathered in _gather(queues, rows)]


def _cut(span: Span, rows: int) -> Iterator[Span]:
    for first in range(span.first, span.last + 1, rows):
        yield Span(first, min(first + rows - 1, span.last))


def _gather(queues: Sequence[QueueSpan], most: int) -> Iterator[list[str]]:
    gathered: list[str] = []
    rows = 0
    for queue in queues:
        for piece in _cut(queue.span, most):
            width = piece.last - piece.first + 1
            if gathered and (rows + width > most or len(gathered) == QUEUES_PER_SLICE):
                yield gathered
                gathered, rows = [], 0
            gathered.append(_of_queue(queue, piece))
            rows += width
    if gathered:
        yield gathered


def _of_queue(queue: QueueSpan, piece: Span) -> str:
    return (
        f"topic_id = {queue.topic_id:d} AND queue_id = {queue.queue_id:d} "
        f"AND queue_offset BETWEEN {piece.first:d} AND {piece.last:d}"
    )
