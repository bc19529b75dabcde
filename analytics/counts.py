"""Counts in the broker what an export must hold, by SQL and without Spark."""

from collections.abc import Iterable, Sequence

from analytics.closed import ClosedRange, Connection, Span
from store.statements import Statement

COUNT_MESSAGES = Statement(__file__, "count_messages")
COUNT_ENTRIES = Statement(__file__, "count_entries")
COUNT_ENDS = Statement(__file__, "count_ends")
COUNT_UNDECIDED = Statement(__file__, "count_undecided")
FIND_KEPT_SEGMENTS = Statement(__file__, "find_kept_segments")


def messages(broker: Connection, closed: ClosedRange) -> int:
    """The messages of a closed range."""
    return _in_spans(broker, COUNT_MESSAGES, ((segment.id, segment.messages) for segment in closed.segments))


def ends(broker: Connection, closed: ClosedRange) -> int:
    """The transactions that were decided in a closed range."""
    return _in_spans(broker, COUNT_ENDS, ((segment.id, segment.operations) for segment in closed.segments))


def entries(broker: Connection, closed: ClosedRange) -> int:
    """The entries of a closed range."""
    return sum(
        _count(
            broker,
            COUNT_ENTRIES,
            {
                "segment_id": segment.id,
                "topic_ids": [queue.topic_id for queue in segment.entries],
                "queue_ids": [queue.queue_id for queue in segment.entries],
                "firsts": [queue.span.first for queue in segment.entries],
                "lasts": [queue.span.last for queue in segment.entries],
            },
        )
        for segment in closed.segments
    )


def undecided(quiet: Connection) -> tuple[int, int]:
    """The half messages and the checks that a quiet transaction sees."""
    [(halves, checks)] = quiet.execute(COUNT_UNDECIDED.sql()).fetchall()
    return halves, checks


def dropped(broker: Connection, closed: ClosedRange) -> Sequence[int]:
    """The segments of a closed range that retention has dropped since."""
    ids = [segment.id for segment in closed.segments]
    kept = {segment_id for (segment_id,) in broker.execute(FIND_KEPT_SEGMENTS.sql(), {"segment_ids": ids}).fetchall()}
    return [segment_id for segment_id in ids if segment_id not in kept]


def _in_spans(broker: Connection, statement: Statement, spans: Iterable[tuple[int, Span | None]]) -> int:
    return sum(
        _count(broker, statement, {"segment_id": segment_id, "first": span.first, "last": span.last})
        for segment_id, span in spans
        if span is not None
    )


def _count(broker: Connection, statement: Statement, asked: dict[str, object]) -> int:
    [(rows,)] = broker.execute(statement.sql(), asked).fetchall()
    return int(rows)
