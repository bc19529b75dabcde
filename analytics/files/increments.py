"""Increments: what of a closed range an earlier export does not hold yet, and what retention dropped in between."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy

from analytics.closed import ClosedRange, ClosedSegment, QueueSpan, Span
from analytics.files.manifest import Hole, Reached

NOTHING = Reached(segment=0, log_offset=-1, operation_id=-1, queues=[])


def after(ranges: ClosedRange, ends: Reached) -> ClosedRange:
    """The rows of a closed range behind the ends of an earlier export."""
    queues = _by_queue(ends)
    return replace(ranges, segments=[_after(segment, ends, queues) for segment in ranges.segments])


def reached(ranges: ClosedRange, ends: Reached) -> Reached:
    """The ends of an export that had these ends, and now holds the range as well."""
    queues = _by_queue(ends)
    for segment in ranges.segments:
        for queue in segment.entries:
            key = (queue.topic_id, queue.queue_id)
            queues[key] = max(queues.get(key, -1), queue.span.last)
    return Reached(
        segment=ranges.segments[-1].id,
        log_offset=max([ends.log_offset, *(one.messages.last for one in ranges.segments if one.messages)]),
        operation_id=max([ends.operation_id, *(one.operations.last for one in ranges.segments if one.operations)]),
        queues=[(*key, last) for key, last in sorted(queues.items())],
    )


def holes(ranges: ClosedRange, ends: Reached) -> list[Hole]:
    """What retention dropped behind the ends of an earlier export.

    Log offsets and operations have gaps of their own, where a write was rolled back. Only one before a segment that the
    earlier export did not know can be retention's.
    """
    if ends == NOTHING:
        return []
    messages = [(one.id, one.messages) for one in ranges.segments if one.messages]
    operations = [(one.id, one.operations) for one in ranges.segments if one.operations]
    return [
        *_hole_of("messages", ends.log_offset, messages, ends),
        *_entries(ranges, ends),
        # The first operation is 1.
        *_hole_of("transactions", max(ends.operation_id, 0), operations, ends),
    ]


def _hole_of(table: str, end: int, kept: Sequence[tuple[int, Span]], ends: Reached) -> Iterator[Hole]:
    for segment_id, span in kept[:1]:
        if segment_id > ends.segment and span.first > end + 1:
            yield Hole(table, end + 1, span.first - 1)


def _entries(ranges: ClosedRange, ends: Reached) -> Iterator[Hole]:
    """The offsets of a queue have no holes, so each is retention's."""
    following = {key: last + 1 for key, last in _by_queue(ends).items()}
    for segment in ranges.segments:
        for queue in segment.entries:
            expected = following.get((queue.topic_id, queue.queue_id), 0)
            if queue.span.first > expected:
                yield Hole("entries", expected, queue.span.first - 1, queue.topic_id, queue.queue_id)
            following[queue.topic_id, queue.queue_id] = max(expected, queue.span.last + 1)


def unused(ranges: ClosedRange, ends: Reached, offsets: Any, holes: Sequence[Hole]) -> list[tuple[int, int]]:
    """The log offsets between the ends and those of the range that no new message has, in runs.

    Writes that were rolled back had them. What retention dropped is left out.
    """
    spans = [segment.messages for segment in ranges.segments if segment.messages]
    if not spans:
        return []
    dropped = [hole.last for hole in holes if hole.table == "messages"]
    after_end = ends.log_offset + 1 if ends != NOTHING else spans[0].first
    return runs_without(numpy.sort(offsets), max([after_end, *(last + 1 for last in dropped)]), spans[-1].last)


def runs_without(offsets: Any, first: int, last: int) -> list[tuple[int, int]]:
    """The runs of numbers from first to last that are not among the ordered offsets."""
    fenced = numpy.concatenate([[first - 1], offsets[(offsets >= first) & (offsets <= last)], [last + 1]])
    before = numpy.flatnonzero(numpy.diff(fenced) > 1)
    return [(int(fenced[at]) + 1, int(fenced[at + 1]) - 1) for at in before]


def _by_queue(ends: Reached) -> dict[tuple[int, int], int]:
    return {(topic_id, queue_id): last for topic_id, queue_id, last in ends.queues}


def _after(segment: ClosedSegment, ends: Reached, queues: dict[tuple[int, int], int]) -> ClosedSegment:
    entries = [
        QueueSpan(queue.topic_id, queue.queue_id, span)
        for queue in segment.entries
        if (span := _behind(queue.span, queues.get((queue.topic_id, queue.queue_id), -1)))
    ]
    return replace(
        segment,
        messages=_behind(segment.messages, ends.log_offset),
        operations=_behind(segment.operations, ends.operation_id),
        entries=entries,
    )


def _behind(span: Span | None, end: int) -> Span | None:
    if span is None or span.last <= end:
        return None
    return Span(max(span.first, end + 1), span.last)
