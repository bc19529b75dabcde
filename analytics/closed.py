"""Finds what will not change any more: ranges of the append-only tables that no writer is still filling.

Whoever appends holds APPENDERS_LOCK together with the other writers. The export takes it alone for the moment of one
snapshot: nothing is under way then, so all that is at or below the snapshot's highest offsets is final and can be read
later, in pieces, by many sessions. What does change (half messages) is read in that very snapshot: each transaction is
either among its halves or among its operations, never in both and never in neither.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg.rows import TupleRow

from analytics.errors import LogBusy
from store import log
from store.db.statements import Statement
from store.log import APPENDERS_LOCK

HALT_WRITERS = Statement(log.__file__, "halt_writers")
LIMIT_WAIT = Statement(__file__, "limit_wait")
EXPORT_SNAPSHOT = Statement(__file__, "export_snapshot")
TAKE_SNAPSHOT = Statement(__file__, "take_snapshot")
FIND_SEGMENTS = Statement(__file__, "find_segments")
SEGMENT_BOUNDS = Statement(__file__, "segment_bounds")
ENTRY_BOUNDS = Statement(__file__, "entry_bounds")

# New writers wait behind the one who waits for the old ones: half a second costs them little, and 40 tries outlast the
# 20 s after which the server ends a session that idles in a transaction.
WAIT_MILLISECONDS = 500
TRIES = 40
PAUSE_SECONDS = 0.5

Connection = psycopg.Connection[TupleRow]


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets from `first` to `last`, both inclusive."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class QueueSpan:
    """The offsets of one queue in one segment."""

    topic_id: int
    queue_id: int
    span: Span


@dataclass(frozen=True, slots=True)
class ClosedSegment:
    """What is final in one segment; None where it holds no such row."""

    id: int
    state: str
    messages: Span | None
    operations: Span | None
    entries: Sequence[QueueSpan]


@dataclass(frozen=True, slots=True)
class ClosedRange:
    """What is final in the whole log at `taken_at`, by the database's clock."""

    taken_at: datetime
    segments: Sequence[ClosedSegment]


def connect(conninfo: str) -> Connection:
    """A connection that puts values into statements itself: the server plans for one segment and prunes the others."""
    return psycopg.connect(conninfo, cursor_factory=psycopg.ClientCursor)


@contextmanager
def quiet(conninfo: str) -> Iterator[tuple[Connection, str]]:
    """A transaction that sees the log while nobody was appending to it, and the statement by which others see the same.

    Writers wait only while the snapshot is taken, not for the time of the block. Raises LogBusy.
    """
    with connect(conninfo) as reader:
        with connect(conninfo) as halter:
            _halt(halter)
            reader.execute(_sharing(halter))
        yield reader, _sharing(reader)


def find(reader: Connection) -> ClosedRange:
    """The closed range of a quiet transaction."""
    found = reader.execute(FIND_SEGMENTS.sql()).fetchall()
    return ClosedRange(
        taken_at=found[0][2], segments=[_segment(reader, segment_id, state) for segment_id, state, _ in found]
    )


def _segment(reader: Connection, segment_id: int, state: str) -> ClosedSegment:
    asked = {"segment_id": segment_id}
    [bounds] = reader.execute(SEGMENT_BOUNDS.sql(), asked).fetchall()
    queues = reader.execute(ENTRY_BOUNDS.sql(), asked).fetchall()
    return ClosedSegment(
        id=segment_id,
        state=state,
        messages=_span(*bounds[:2]),
        operations=_span(*bounds[2:]),
        entries=[QueueSpan(topic_id, queue_id, Span(*offsets)) for topic_id, queue_id, *offsets in queues],
    )


def _span(first: int | None, last: int | None) -> Span | None:
    return None if first is None or last is None else Span(first, last)


def _sharing(connection: Connection) -> str:
    [[snapshot]] = connection.execute(EXPORT_SNAPSHOT.sql()).fetchall()
    return psycopg.ClientCursor(connection).mogrify(TAKE_SNAPSHOT.sql(), {"snapshot": snapshot})


def _halt(halter: Connection) -> None:
    for _ in range(TRIES):
        try:
            halter.execute(LIMIT_WAIT.sql(), {"milliseconds": str(WAIT_MILLISECONDS)})
            halter.execute(HALT_WRITERS.sql(), {"key": APPENDERS_LOCK})
        except psycopg.errors.LockNotAvailable:
            halter.rollback()
            time.sleep(PAUSE_SECONDS)
        else:
            return
    raise LogBusy(
        f"A writer of the log has held it for {TRIES} tries of {WAIT_MILLISECONDS} ms: look in pg_stat_activity for a "
        "session that idles in a transaction, end it, and export again."
    )
