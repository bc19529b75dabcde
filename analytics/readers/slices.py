"""Cuts closed ranges into slices: WHERE clauses for Spark's tasks, each within one segment."""

from collections.abc import Iterator, Sequence

from analytics.closed import QueueSpan, Span

# Small enough that an export of 200,000 messages uses two cores, large enough that reading takes longer than
# connecting.
SLICE_ROWS = 100_000
# For topics with many small queues: each queue is one index probe, and makes the clause longer.
QUEUES_PER_SLICE = 100


def of_span(column: str, segment_id: int, span: Span | None, rows: int = SLICE_ROWS) -> list[str]:
    """Clauses that together select the rows of one segment whose `column` lies in the span, at most
    `rows` per clause.
    """
    pieces = [] if span is None else list(_cut(span, rows))
    return [f"segment_id = {segment_id:d} AND {column} BETWEEN {p.first:d} AND {p.last:d}" for p in pieces]


def of_queues(segment_id: int, queues: Sequence[QueueSpan], rows: int = SLICE_ROWS) -> list[str]:
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
