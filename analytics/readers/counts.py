"""Counts by SQL, without Spark, the rows of the broker that an export must hold.

Retention may drop a segment during an export. Then both sides count 0 rows of the segment and agree. So a range without
rows is refused: when the range was found, it had at least its first and last row.
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
    """The number of messages among the final rows of `closed`. Raises SegmentDropped if retention dropped a segment."""
    return _in_spans(broker, COUNT_MESSAGES, ((segment.id, segment.messages) for segment in closed.segments))


def ends(broker: Connection, closed: ClosedRange) -> int:
    """The number of ended transactions among the final rows of `closed`. Raises SegmentDropped like `messages`."""
    return _in_spans(broker, COUNT_ENDS, ((segment.id, segment.operations) for segment in closed.segments))


def entries(broker: Connection, closed: ClosedRange) -> int:
    """The number of entries among the final rows of `closed`. Raises SegmentDropped like `messages`."""
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
    """The numbers of half messages, timers and check attempts in the snapshot of a quiet transaction."""
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
