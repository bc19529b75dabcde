"""The order in which a stream reads entries: one offset for each queue, without holes, named `topic_id/queue_id`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from analytics.closed import ClosedRange, ClosedSegment, QueueSpan, Span
from analytics.connections import Connection, read
from analytics.errors import HoleFound, LogBehind, OptionRefused
from analytics.readers import slices
from analytics.readers.datasource.chosen import FIND_TOPICS
from analytics.readers.datasource.positions import Position, behind, both, dropped
from analytics.rows import QueueSince
from store.db.statements import Statement

QUEUE_OFFSETS_SINCE = Statement(__file__, "queue_offsets_since", QueueSince)
# Values of the option startingOffsets, as in Spark's source for Kafka.
LATEST, EARLIEST = -1, -2
EXAMPLE = '{"orders": {"0": 23}}'


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
                    f"The offsets name {topic}, which is no topic with queues: give {EXAMPLE}, with {EARLIEST} "
                    f"for the earliest offset of a queue and {LATEST} for the latest."
                )
            for queue, offset in queues.items():
                key = f"{topics[topic]}/{queue}"
                position_of[key] = {EARLIEST: firsts.get(key, 0), LATEST: ends.get(key, 0)}.get(offset, offset)
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
            for clause in slices.of_queues(segment.id, list(_within(segment, wanted)), rows)
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
