"""Counts in the broker the rows that an export must hold, by SQL and without Spark.

Retention may drop a segment while it is exported. Both sides then count no row of it and agree, so a range without a
row is refused: when it was found, it had its first and its last row at least.
"""

from collections.abc import Iterable

from analytics.closed import ClosedRange, Span
from analytics.connections import Connection, read
from analytics.errors import SegmentDropped
from analytics.rows import Count, Undecided
from store.db.statements import Statement

COUNT_MESSAGES = Statement(__file__, "count_messages", Count)
COUNT_ENTRIES = Statement(__file__, "count_entries", Count)
COUNT_ENDS = Statement(__file__, "count_ends", Count)
ESTIMATE_MESSAGES = Statement(__file__, "estimate_messages", one=int)
COUNT_UNDECIDED = Statement(__file__, "count_undecided", Undecided)


def estimate(broker: Connection) -> int:
    """About how many messages the broker keeps."""
    [messages] = read(broker, ESTIMATE_MESSAGES)
    return messages


def messages(broker: Connection, closed: ClosedRange) -> int:
    """The messages of a closed range. Raises SegmentDropped."""
    return _in_spans(broker, COUNT_MESSAGES, ((segment.id, segment.messages) for segment in closed.segments))


def ends(broker: Connection, closed: ClosedRange) -> int:
    """The transactions that were ended in a closed range. Raises SegmentDropped."""
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


def undecided(quiet: Connection, segment_id: int = 0) -> Undecided:
    """The half messages, the timers, and the check attempts from a segment on, in a quiet transaction's snapshot."""
    [counted] = read(quiet, COUNT_UNDECIDED, {"segment_id": segment_id})
    return counted


def _in_spans(broker: Connection, statement: Statement[Count], spans: Iterable[tuple[int, Span | None]]) -> int:
    return sum(
        _count(broker, statement, segment_id, {"first": span.first, "last": span.last})
        for segment_id, span in spans
        if span is not None
    )


def _count(broker: Connection, statement: Statement[Count], segment_id: int, bounds: dict[str, object]) -> int:
    [count] = read(broker, statement, {"segment_id": segment_id, **bounds})
    if not count.there:
        raise SegmentDropped(
            f"Retention dropped segment {segment_id} while it was exported; the folder is as it was: export again."
        )
    return count.counted
