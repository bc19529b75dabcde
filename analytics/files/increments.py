"""Increments: which rows of a closed range an earlier export lacks, and which rows retention dropped before this."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy

from analytics.closed import ClosedRange, ClosedSegment, QueueSpan, Span
from analytics.files.manifest import Hole, Reached

NOTHING = Reached(segment=0, log_offset=-1, operation_id=-1, queues=[])


def after(ranges: ClosedRange, ends: Reached) -> ClosedRange:
    """The part of a closed range that comes after the last rows of an earlier export."""
    queues = _by_queue(ends)
    return replace(ranges, segments=[_after(segment, ends, queues) for segment in ranges.segments])


def reached(ranges: ClosedRange, ends: Reached) -> Reached:
    """The end of an export after the rows of the closed range `ranges` were added to the rows up to `ends`."""
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
    """The rows that retention dropped after the last rows of an earlier export, before they were exported.

    Log offsets and operation ids also have gaps where a write was rolled back. So only a gap in front of a segment that
    is new to the export counts as dropped by retention.
    """
    if ends == NOTHING:
        return []
    messages = [(one.id, one.messages) for one in ranges.segments if one.messages]
    operations = [(one.id, one.operations) for one in ranges.segments if one.operations]
    return [
        *_hole_of("messages", ends.log_offset, messages, ends),
        *_entries(ranges, ends),
        # Ids of operations begin at 1.
        *_hole_of("transactions", max(ends.operation_id, 0), operations, ends),
    ]


def _hole_of(table: str, end: int, kept: Sequence[tuple[int, Span]], ends: Reached) -> Iterator[Hole]:
    for segment_id, span in kept[:1]:
        if segment_id > ends.segment and span.first > end + 1:
            yield Hole(table, end + 1, span.first - 1)


def _entries(ranges: ClosedRange, ends: Reached) -> Iterator[Hole]:
    """Writes leave no gaps in the offsets of a queue, so every gap was made by retention."""
    following = {key: last + 1 for key, last in _by_queue(ends).items()}
    for segment in ranges.segments:
        for queue in segment.entries:
            expected = following.get((queue.topic_id, queue.queue_id), 0)
            if queue.span.first > expected:
                yield Hole("entries", expected, queue.span.first - 1, queue.topic_id, queue.queue_id)
            following[queue.topic_id, queue.queue_id] = max(expected, queue.span.last + 1)


def unused(ranges: ClosedRange, ends: Reached, offsets: Any, holes: Sequence[Hole]) -> list[tuple[int, int]]:
    """The log offsets after `ends` that no message of the range has, as pairs of first and last offset.

    Writes that were rolled back used these offsets. Offsets that retention dropped are not included.
    """
    spans = [segment.messages for segment in ranges.segments if segment.messages]
    if not spans:
        return []
    dropped = [hole.last for hole in holes if hole.table == "messages"]
    after_end = ends.log_offset + 1 if ends != NOTHING else spans[0].first
    return runs_without(numpy.sort(offsets), max([after_end, *(last + 1 for last in dropped)]), spans[-1].last)


def runs_without(offsets: Any, first: int, last: int) -> list[tuple[int, int]]:
    """Pairs of first and last for all numbers between `first` and `last` that are missing in the sorted offsets."""
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
