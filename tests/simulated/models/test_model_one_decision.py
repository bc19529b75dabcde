"""One decision of a transaction: the model holds, and each twin without one of its guards is refuted."""

import pytest

from tests.simulated.models.checker import check
from tests.simulated.models.one_decision import MODEL, TWINS

# The length of the shortest counterexample to each twin, and what is wrong behind it.
REFUTED = {
    "a stepwise end that waited does not look at the row again": (7, "two decisions: COMMIT and ROLLBACK"),
    "an end records its operation in a transaction of its own": (
        3,
        "the half message is gone without a decision, or decided and still there",
    ),
    "an end that found nothing believes it": (4, "the producer was refused, and the transaction could be decided"),
    "a pipelined end decides a discarded half message": (
        8,
        "a discarded half message was decided by another one than the operator",
    ),
    "a discard does not look again whether checks are used up": (7, "discarded, and its checks were not used up"),
}


def test_a_transaction_has_one_decision_whatever_its_ends_checks_discards_and_operators_do_in_between() -> None:
    checked = check(MODEL)

    assert checked.counterexample is None, checked
    assert checked.states == 28_689


@pytest.mark.parametrize("twin", TWINS)
def test_the_model_of_one_decision_is_refuted_without_one_of_its_guards(twin: str) -> None:
    counterexample = check(TWINS[twin]).counterexample

    assert counterexample is not None
    assert (len(counterexample.steps), counterexample.fault) == REFUTED[twin], counterexample
