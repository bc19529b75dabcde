"""Slices: together they are the closed range, and no row is in two of them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from analytics import closed
from analytics.closed import QUEUES_PER_SLICE, SLICE_ROWS, QueueSpan, Span
from analytics.readers.jdbc import steps

spans = st.builds(
    lambda first, rows: Span(first, first + rows - 1), st.integers(0, 2**62), st.integers(1, 4 * SLICE_ROWS)
)
QUEUE = re.compile(r"topic_id = (\d+) AND queue_id = (\d+) AND queue_offset BETWEEN (\d+) AND (\d+)")


@given(spans)
def test_slices_of_a_span_follow_each_other_without_a_gap(span: Span) -> None:
    clauses = closed.slices_of_span("log_offset", 7, span)

    found = [tuple(map(int, re.findall(r"\d+", clause))) for clause in clauses]
    assert {segment_id for segment_id, _, _ in found} == {7}
    assert [first for _, first, _ in found] == [span.first, *(last + 1 for _, _, last in found[:-1])]
    assert found[-1][2] == span.last
    assert all(last - first < SLICE_ROWS for _, first, last in found)


@given(st.dictionaries(st.tuples(st.integers(1, 50), st.integers(0, 50)), spans, max_size=300))
def test_slices_of_queues_hold_each_offset_of_each_queue_once(queues: dict[tuple[int, int], Span]) -> None:
    clauses = closed.slices_of_queues(7, [QueueSpan(*queue, span) for queue, span in queues.items()])

    held: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for clause in clauses:
        pieces = [tuple(map(int, piece)) for piece in QUEUE.findall(clause)]
        assert clause.startswith("segment_id = 7 AND (")
        assert len(pieces) <= QUEUES_PER_SLICE
        assert sum(last - first + 1 for _, _, first, last in pieces) <= SLICE_ROWS
        for topic_id, queue_id, first, last in pieces:
            held.setdefault((topic_id, queue_id), []).append((first, last))
    assert held.keys() == queues.keys()
    for queue, pieces_of_queue in held.items():
        starts = [queues[queue].first, *(last + 1 for _, last in pieces_of_queue[:-1])]
        assert [first for first, _ in pieces_of_queue] == starts
        assert pieces_of_queue[-1][1] == queues[queue].last


def test_an_empty_range_has_no_slices() -> None:
    assert closed.slices_of_span("log_offset", 7, None) == []
    assert closed.slices_of_queues(7, []) == []


@given(st.integers(0, 2**31), st.integers(1, 2**30))
def test_each_weight_is_in_one_step_and_a_step_fits_into_memory(weight: int, heaviest: int) -> None:
    taken = [rows for bounds, rows in steps(heaviest) if holds(bounds, weight)]

    assert len(taken) == 1
    assert taken[0] == 1 or taken[0] * min(weight, heaviest) <= 10_000 * 4096


def holds(bounds: str, weight: int) -> bool:
    return all(
        weight <= int(limit) if relation == "<=" else weight > int(limit)
        for relation, limit in re.findall(r"weight (<=|>) (\d+)", bounds)
    )
