"""Cuts closed ranges into slices: the WHERE clauses that Spark's tasks read by, each in one segment."""

from collections.abc import Iterator, Sequence

from analytics.closed import QueueSpan, Span

# Small enough that 200,000 messages keep two cores busy, large enough that a task reads for longer than it connects.
SLICE_ROWS = 100_000
# Of a topic with many small queues; each is one index probe, and the clause has to be sent.
QUEUES_PER_SLICE = 100


def of_span(column: str, segment_id: int, span: Span | None) -> list[str]:
    """Clauses that together select the rows of one segment whose `column` is in the span."""
    pieces = [] if span is None else list(_cut(span))
    return [f"segment_id = {segment_id:d} AND {column} BETWEEN {p.first:d} AND {p.last:d}" for p in pieces]


def of_queues(segment_id: int, queues: Sequence[QueueSpan]) -> list[str]:
    """Clauses that together select the given entries of one segment."""
    return [f"segment_id = {segment_id:d} AND ({' OR '.join(gathered)})" for gathered in _gather(queues)]


def _cut(span: Span) -> Iterator[Span]:
    for first in range(span.first, span.last + 1, SLICE_ROWS):
        yield Span(first, min(first + SLICE_ROWS - 1, span.last))


def _gather(queues: Sequence[QueueSpan]) -> Iterator[list[str]]:
    gathered: list[str] = []
    rows = 0
    for queue in queues:
        for piece in _cut(queue.span):
            width = piece.last - piece.first + 1
            if gathered and (rows + width > SLICE_ROWS or len(gathered) == QUEUES_PER_SLICE):
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
