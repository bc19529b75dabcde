"""Segments: the model holds, and each twin without one of its guards is refuted."""

import pytest

from tests.simulated.models.checker import check
from tests.simulated.models.segments import LEVELS, MODEL, TWINS

# The length of the shortest counterexample to each twin, and what is wrong behind it.
REFUTED = {
    "a roll does not wait for the batches under way": (13, "an entry has no message"),
    "a body that lies far back is not appended again": (
        6,
        "an entry points further back than into the segment before its own",
    ),
    "a log is dropped without a look for rows that need it": (9, "a row needs a body that is gone"),
    "a log is dropped beside a batch that was under way": (15, "a batch has read where a body is, and it is gone"),
    "a log is dropped before the queues of the segment behind it": (8, "an entry has no message"),
    "queues are dropped with entries of levels that wait": (
        3,
        "an entry of a delay level is dropped before its release",
    ),
    "queues are dropped with the newest moves": (4, "a group's newest move is lost"),
}


def test_no_segment_is_dropped_that_a_row_or_an_entry_or_a_batch_needs() -> None:
    checked = check(MODEL)

    assert checked.counterexample is None, checked
    assert checked.states == 10_908


def test_no_segment_is_dropped_with_an_entry_of_a_delay_level_that_waits() -> None:
    checked = check(LEVELS)

    assert checked.counterexample is None, checked
    assert checked.states == 1_886


@pytest.mark.parametrize("twin", TWINS)
def test_the_model_of_segments_is_refuted_without_one_of_its_guards(twin: str) -> None:
    counterexample = check(TWINS[twin]).counterexample

    assert counterexample is not None
    assert (len(counterexample.steps), counterexample.fault) == REFUTED[twin], counterexample
