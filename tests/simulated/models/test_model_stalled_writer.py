"""The fence of a stalled writer: the model holds, and each twin without one of its guards is refuted."""

import pytest

from tests.simulated.models.checker import check
from tests.simulated.models.stalled_writer import MODEL, TWINS

# The length of the shortest counterexample to each twin, and what is wrong behind it.
REFUTED = {
    "no process looks for stalled writers": (3, "no way leads from here to a settled state"),
    "a lock is taken from a session that lives": (7, "two messages have one offset, or an offset is left out"),
    "a commit leaves without a look at what the server has said": (
        6,
        "the outcome is called unknown, and the server had ended the session before the commit left",
    ),
    "each end of a session proves that nothing was stored": (10, "a message is stored twice"),
    "a commit without an answer counts as not stored": (
        6,
        "answered that nothing was stored, and the message is there",
    ),
}


def test_a_stalled_writer_holds_up_no_other_and_its_caller_is_answered_the_truth() -> None:
    checked = check(MODEL)

    assert checked.counterexample is None, checked
    assert checked.states == 125


@pytest.mark.parametrize("twin", TWINS)
def test_the_model_of_stalled_writer_is_refuted_without_one_of_its_guards(twin: str) -> None:
    counterexample = check(TWINS[twin]).counterexample

    assert counterexample is not None
    assert (len(counterexample.steps), counterexample.fault) == REFUTED[twin], counterexample
