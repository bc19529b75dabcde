"""Ack and send: the model holds, and each twin without one of its guards is refuted."""

import pytest

from tests.simulated.models.checker import check
from tests.simulated.models.forwarding import MODEL, TWINS

# The length of the shortest counterexample to each twin, and what is wrong behind it.
REFUTED = {
    "the message is stored, and then acked by a transaction of its own": (7, "two messages were made of one"),
    "the delivery is acked, and then sent by a transaction of its own": (
        5,
        "acked, and the message that was made of it is not stored",
    ),
    "a receipt is not locked before the message is stored": (8, "two messages were made of one"),
    "a repeat looks for its messages before its receipt": (7, "refused, and its message is stored"),
    "a batch acks before it knows that the message can be stored": (
        3,
        "acked, and the message that was made of it is not stored",
    ),
    "a batch sends for a receipt that has changed meanwhile": (7, "two messages were made of one"),
}


def test_a_message_made_of_a_delivery_is_stored_once_and_with_the_ack() -> None:
    checked = check(MODEL)

    assert checked.counterexample is None, checked
    assert checked.states == 28_127


@pytest.mark.parametrize("twin", TWINS)
def test_the_model_of_forwarding_is_refuted_without_one_of_its_guards(twin: str) -> None:
    counterexample = check(TWINS[twin]).counterexample

    assert counterexample is not None
    assert (len(counterexample.steps), counterexample.fault) == REFUTED[twin], counterexample
