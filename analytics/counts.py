"""Counts in the broker what an export must hold, by SQL and without Spark.

Retention may drop a segment while it is exported. Its tables then are empty on both sides, so that counts alone would
agree: but a range that was found holds its first and its last row at least.
"""

from collections.abc import Iterable
from typing import Any

from analytics.closed import ClosedRange, Connection, Span
from analytics.errors import SegmentDropped
from store.db.statements import Statement

COUNT_MESSAGES = Statement(__file__, "count_messages")
COUNT_ENTRIES = Statement(__file__, "count_entries")
COUNT_ENDS = Statement(__file__, "count_ends")
ESTIMATE_MESSAGES = Statement(__file__, "estimate_messages")
COUNT_UNDECIDED = Statement(__file__, "count_undecided")


def estimate(broker: Connection) -> int:
    """About how many messages the broker keeps."""
    [(messages,)] = broker.execute(ESTIMATE_MESSAGES.sql()).fetchall()
    return int(messages)


def messages(broker: Connection, closed: ClosedRange) -> int:
    """The messages of a closed range. Raises SegmentDropped."""
    return _in_spans(broker, COUNT_MESSAGES, ((segment.id, segment.messages) for segment in closed.segments))


def ends(broker: Connection, closed: ClosedRange) -> int:
    """The transactions that were decided in a closed range. Raises SegmentDropped."""
    return _in_spans(broker, COUNT_ENDS, ((segment.id, segment.operations) for segment in closed.segments))


def entries(broker: Connection, closed: ClosedRange) -> int:
    """The entries of a closed range. Raises SegmentDropped."""
    return sum(
        _count(
            broker,
            COUNT_ENTRIES,
            segment.id,
            {
                "topic_ids": [queue.topic_id for queue in segment.entries],
                "queue_ids": [queue.queue_id for queue in segment.entries],
                "firsts": [queue.span.first for queue in segment.entries],
                "lasts": [queue.span.last for queue in segment.entries],
            },
        )
        for segment in closed.segments
        if segment.entries
    )


def undecided(quiet: Connection) -> tuple[int, int]:
    """The half messages and the checks that a quiet transaction sees."""
    [(halves, checks)] = quiet.execute(COUNT_UNDECIDED.sql()).fetchall()
    return halves, checks


def _in_spans(broker: Connection, statement: Statement[Any], spans: Iterable[tuple[int, Span | None]]) -> int:
    return sum(
        _count(broker, statement, segment_id, {"first": span.first, "last": span.last})
        for segment_id, span in spans
        if span is not None
    )


def _count(broker: Connection, statement: Statement[Any], segment_id: int, bounds: dict[str, object]) -> int:
    [(there, counted)] = broker.execute(statement.sql(), {"segment_id": segment_id, **bounds}).fetchall()
    if not there:
        raise SegmentDropped(
            f"Retention dropped segment {segment_id} while it was exported; the folder is as it was: export again."
        )
    return int(counted)
