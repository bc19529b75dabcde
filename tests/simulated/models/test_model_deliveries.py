"""Deliveries: the model holds, and each twin without one of its guards is refuted."""

import pytest

from tests.simulated.models.checker import check
from tests.simulated.models.deliveries import MODEL, ORDERED, TWINS

# The length of the shortest counterexample to each twin, and what is wrong behind it.
REFUTED = {
    "an ack looks once": (5, "an ack is refused as expired, and the delivery has time left"),
    "a stepwise batch looks without locks": (8, "an ack is refused as expired, and the delivery has time left"),
    "a bundle is taken apart without its lock": (7, "acked, and offered again"),
    "an ack of an ordered group does not compare nonces": (
        11,
        "an old handle has acked the delivery of another consumer",
    ),
    "expiry does not look again at the time": (7, "a delivery was ended that had time left"),
    "a retry is published in a transaction of its own": (4, "the message is in no place, or in two"),
}


def test_a_message_is_offered_until_it_is_acked_or_a_dead_letter() -> None:
    checked = check(MODEL)

    assert checked.counterexample is None, checked
    assert checked.states == 65_987


def test_a_message_of_an_ordered_group_is_offered_until_it_is_acked_or_a_dead_letter() -> None:
    checked = check(ORDERED)

    assert checked.counterexample is None, checked
    assert checked.states == 15_609


@pytest.mark.parametrize("twin", TWINS)
def test_the_model_of_deliveries_is_refuted_without_one_of_its_guards(twin: str) -> None:
    counterexample = check(TWINS[twin]).counterexample

    assert counterexample is not None
    assert (len(counterexample.steps), counterexample.fault) == REFUTED[twin], counterexample
