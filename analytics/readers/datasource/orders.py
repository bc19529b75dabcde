"""The order of each table that has one: the rows of a closed range by one offset, or by one offset for each queue.

A position is the first offset that has not been read. Spark keeps it in the checkpoint, as JSON.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from analytics import closed
from analytics.closed import ClosedRange, ClosedSegment, QueueSpan, Span
from analytics.connections import Connection, read
from analytics.errors import HoleFound, LogBehind, OptionRefused
from analytics.readers.datasource.chosen import FIND_TOPICS
from analytics.readers.datasource.options import EARLIEST, Bound
from analytics.rows import QueueSince, Since
from store.db.statements import Statement

LOG_OFFSET_SINCE = Statement(__file__, "log_offset_since", Since)
QUEUE_OFFSETS_SINCE = Statement(__file__, "queue_offsets_since", QueueSince)
# Values of the option startingOffsets, as in Spark's source for Kafka.
OF_LATEST, OF_EARLIEST = -1, -2
EXAMPLE = '{"orders": {"0": 23}}'
Position = dict[str, Any]


def both(one: Span, other: Span) -> Span | None:
    """The offsets that both spans have in common."""
    first, last = max(one.first, other.first), min(one.last, other.last)
    return Span(first, last) if first <= last else None


def dropped(what: str) -> str:
    """The sentence for a hole: rows that retention dropped before a stream read them."""
    return (
        f"Retention dropped {what} before this stream read them: begin a new checkpoint, which reads on from the "
        "oldest message that is kept."
    )


def behind(read_on: str, end: str) -> str:
    """The sentence for a log that ends before the position of a stream."""
    return (
        f"This stream has read {read_on}, and {end}: a back-up was restored, or the checkpoint is of another database. "
        "Begin a new checkpoint."
    )


class LogOrder:
    """A stream order with one offset for all rows: the log offset or the operation id."""

    def __init__(self, column: str) -> None:
        self.column = column

    def first(self, ranges: ClosedRange) -> Position:
        """The position of the oldest row that is kept."""
        spans = self._spans(ranges)
        return self._at(min((span.first for _, span in spans), default=0))

    def end(self, ranges: ClosedRange, start: Position | None = None) -> Position:
        """The position after the last final row; `start` if there is no final row. Raises LogBehind."""
        spans, begun = self._spans(ranges), start[self.column] if start else 0
        # If retention dropped all rows, there is nothing to read.
        end = max((span.last + 1 for _, span in spans), default=begun)
        if end < begun:
            raise LogBehind(behind(f"the {self._offsets} below {begun}", f"the log ends before {end}"))
        return self._at(end)

    def since(self, reader: Connection, ranges: ClosedRange, time: datetime) -> Position:
        """The position of the first row at or after a time; without such a row, the end."""
        ends = {name: LogOrder(name).end(ranges)[name] - 1 for name in Since._fields}
        [found] = read(reader, LOG_OFFSET_SINCE, {"since": time, **{f"last_{name}": end for name, end in ends.items()}})
        offset: int | None = getattr(found, self.column)
        return self.end(ranges) if offset is None else self._at(offset)

    def given(
        self, reader: Connection, ranges: ClosedRange, position: Mapping[str, object], others: Position
    ) -> Position:
        """The position that the user gives; `others` has the offsets that it does not name. Raises OptionRefused."""
        offset = position.get(self.column)
        if list(position) != [self.column] or not isinstance(offset, int) or offset < 0:
            raise OptionRefused(f'The offsets are {dict(position)}: give {{"{self.column}": 100}} for this table.')
        return self._at(offset)

    def limited(self, start: Position, end: Position, most: int) -> Position:
        """The position `most` offsets after `start`, but not after `end`."""
        return self._at(min(end[self.column], start[self.column] + most))

    def clauses(self, ranges: ClosedRange, start: Position, end: Position, rows: int) -> list[tuple[int, str]]:
        """The WHERE clauses of the slices between two positions, each with its segment. Raises HoleFound."""
        wanted, spans = Span(start[self.column], end[self.column] - 1), self._spans(ranges)
        if wanted.last < wanted.first:
            return []
        lowest = min((span.first for _, span in spans), default=wanted.last + 1)
        if wanted.first < lowest:
            raise HoleFound(dropped(f"the {self._offsets} {wanted.first} to {lowest - 1}"))
        return [
            (segment, clause)
            for segment, span in spans
            if (piece := both(span, wanted))
            for clause in closed.slices_of_span(self.column, segment, piece, rows)
        ]

    @property
    def _offsets(self) -> str:
        return "log offsets" if self.column == "log_offset" else "operations"

    def _at(self, offset: int) -> Position:
        return {self.column: offset}

    def _spans(self, ranges: ClosedRange) -> list[tuple[int, Span]]:
        of = "messages" if self.column == "log_offset" else "operations"
        return [(segment.id, span) for segment in ranges.segments if (span := getattr(segment, of))]


class QueueOrder:
    """A stream order with one offset for each queue; offsets of a queue have no holes.

    A position names queues `topic_id/queue_id`.
    """

    def first(self, ranges: ClosedRange) -> Position:
        firsts: dict[str, int] = {}
        for _, queue in _queues(ranges):
            firsts.setdefault(_key(queue), queue.span.first)
        return _ordered(firsts)

    def end(self, ranges: ClosedRange, start: Position | None = None) -> Position:
        ends = {_key(queue): queue.span.last + 1 for _, queue in _queues(ranges)}
        for key, begun in (start or {}).items():
            if ends.setdefault(key, begun) < begun:
                raise LogBehind(behind(f"the offsets of queue {key} below {begun}", f"it ends before {ends[key]}"))
        return _ordered(ends)

    def since(self, reader: Connection, ranges: ClosedRange, time: datetime) -> Position:
        ends = self.end(ranges)
        found = read(reader, QUEUE_OFFSETS_SINCE, {"since": time})
        firsts = {f"{row.topic_id}/{row.queue_id}": row.queue_offset for row in found}
        return {key: min(end, firsts.get(key, end)) for key, end in ends.items()}

    def given(
        self, reader: Connection, ranges: ClosedRange, position: Mapping[str, object], others: Position
    ) -> Position:
        firsts, ends, position_of = self.first(ranges), self.end(ranges), dict(others)
        topics = {topic.name: topic.id for topic in read(reader, FIND_TOPICS)}
        for topic, queues in position.items():
            if topic not in topics or not isinstance(queues, dict):
                raise OptionRefused(
                    f"The offsets name {topic}, which is no topic with queues: give {EXAMPLE}, with {OF_EARLIEST} "
                    f"for the earliest offset of a queue and {OF_LATEST} for the latest."
                )
            for queue, offset in queues.items():
                key = f"{topics[topic]}/{queue}"
                position_of[key] = {OF_EARLIEST: firsts.get(key, 0), OF_LATEST: ends.get(key, 0)}.get(offset, offset)
        return _ordered(position_of)

    def limited(self, start: Position, end: Position, most: int) -> Position:
        """The position `most` offsets after `start`.

        Each queue gets a share in proportion to its unread entries; the first queues get the rest.
        """
        waiting = {key: last - start.get(key, 0) for key, last in end.items()}
        total = sum(waiting.values())
        if total <= most:
            return end
        parts = {key: most * rows // total for key, rows in waiting.items()}
        left = most - sum(parts.values())
        for key in sorted(waiting, key=lambda key: parts[key] - waiting[key])[:left]:
            parts[key] += 1
        return _ordered({key: start.get(key, 0) + part for key, part in parts.items() if key in start or part})

    def clauses(self, ranges: ClosedRange, start: Position, end: Position, rows: int) -> list[tuple[int, str]]:
        wanted = {key: Span(start.get(key, 0), last - 1) for key, last in end.items() if last > start.get(key, 0)}
        _require_kept(wanted, ranges)
        return [
            (segment.id, clause)
            for segment in ranges.segments
            for clause in closed.slices_of_queues(segment.id, list(_within(segment, wanted)), rows)
        ]


def _within(segment: ClosedSegment, wanted: Mapping[str, Span]) -> Iterator[QueueSpan]:
    for queue in segment.entries:
        span = wanted.get(_key(queue))
        if span and (piece := both(queue.span, span)):
            yield replace(queue, span=piece)


def _require_kept(wanted: Mapping[str, Span], ranges: ClosedRange) -> None:
    kept = QueueOrder().first(ranges)
    for key, span in wanted.items():
        lowest = kept.get(key, span.last + 1)
        if span.first < lowest:
            raise HoleFound(dropped(f"the offsets {span.first} to {lowest - 1} of queue {key}"))


def _queues(ranges: ClosedRange) -> Sequence[tuple[int, QueueSpan]]:
    return [(segment.id, queue) for segment in ranges.segments for queue in segment.entries]


def _key(queue: QueueSpan) -> str:
    return f"{queue.topic_id}/{queue.queue_id}"


def _ordered(offsets: Mapping[str, int]) -> Position:
    """The position with its queues sorted, because Spark compares positions as texts."""
    return {key: offsets[key] for key in sorted(offsets)}


Order = LogOrder | QueueOrder
# The order of each table, and its field of SegmentRows.
ORDERS: dict[str, tuple[Order, str]] = {
    "committed": (QueueOrder(), "entries"),
    "entries": (QueueOrder(), "entries"),
    "messages": (LogOrder("log_offset"), "messages"),
    "transactions": (LogOrder("operation_id"), "operations"),
}


def positioned(order: Order, reader: Connection, ranges: ClosedRange, bound: Bound) -> Position:
    """The position of a bound in a closed range. Raises OptionRefused."""
    if bound.since:
        return order.since(reader, ranges, bound.since)
    end = order.first(ranges) if bound.end == EARLIEST else order.end(ranges)
    return end if bound.position is None else order.given(reader, ranges, bound.position, end)
