"""Firing of a schedule: the model holds, and each twin without one of its guards is refuted."""

import pytest

from tests.simulated.models.checker import check
from tests.simulated.models.firing import MODEL, TWINS

# The length of the shortest counterexample to each twin, and what is wrong behind it.
REFUTED = {
    "a decision does not compare the next time": (4, "a time is decided twice"),
    "a decision does not compare versions": (6, "a time is decided that the schedule does not have any more"),
    "firings are inserted behind the move of the schedule": (
        2,
        "a time is over without its message, and without a firing",
    ),
    "each message has an id of its own": (8, "the message of a time is stored twice"),
    "a firing is deleted as it is taken": (3, "a time is over without its message, and without a firing"),
    "a change does not know the last time that was decided": (6, "a time is decided twice"),
}


def test_each_time_of_a_schedule_is_decided_once_and_its_message_stored_once() -> None:
    checked = check(MODEL)

    assert checked.counterexample is None, checked
    assert checked.states == 19_785


@pytest.mark.parametrize("twin", TWINS)
def test_the_model_of_firing_is_refuted_without_one_of_its_guards(twin: str) -> None:
    counterexample = check(TWINS[twin]).counterexample

    assert counterexample is not None
    assert (len(counterexample.steps), counterexample.fault) == REFUTED[twin], counterexample
