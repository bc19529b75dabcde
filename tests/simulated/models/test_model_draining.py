"""Drain of an outbox: the model holds, and each twin without one of its guards is refuted."""

import pytest

from tests.simulated.models.checker import check
from tests.simulated.models.draining import MODEL, TWINS

# The length of the shortest counterexample to each twin, and what is wrong behind it.
REFUTED = {
    "an insert takes its number without a lock of its key": (
        6,
        "rows of one key are not sent in the order of their commits",
    ),
    "the source commits before the messages are stored": (4, "a row is gone, and its message is not stored"),
    "each sending of a row has an id of its own": (7, "a row is sent twice"),
    "rows behind one that waits are sent": (7, "rows of one key are not sent in the order of their commits"),
}


def test_rows_of_an_outbox_are_sent_once_in_the_order_of_their_commits() -> None:
    checked = check(MODEL)

    assert checked.counterexample is None, checked
    assert checked.states == 11_956


@pytest.mark.parametrize("twin", TWINS)
def test_the_model_of_draining_is_refuted_without_one_of_its_guards(twin: str) -> None:
    counterexample = check(TWINS[twin]).counterexample

    assert counterexample is not None
    assert (len(counterexample.steps), counterexample.fault) == REFUTED[twin], counterexample
