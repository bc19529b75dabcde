"""The split of a cell: the model holds, and each twin without one of its guards is refuted."""

import pytest

from tests.simulated.models.checker import check
from tests.simulated.models.split import MODEL, TWINS

# The length of the shortest counterexample to each twin, and what is wrong behind it.
REFUTED = {
    "nothing refuses a writer with an old map": (17, "an acknowledged message is lost: the new cell does not have it"),
    "a session that is about to begin is not waited for": (
        16,
        "an acknowledged message is lost: the new cell does not have it",
    ),
    "the position of the source is read before its sessions are ended": (
        16,
        "an acknowledged message is lost: the new cell does not have it",
    ),
    "a run does not look whether the fence is its own": (
        13,
        "both cells work on the half messages and deliveries of the moved topic",
    ),
    "a run notes a step that another run works at": (
        14,
        "the move is noted as undone, or as not divided, and the map names the new cell",
    ),
    "a second run reads the move before it takes the move over": (
        15,
        "the move is noted as undone, or as not divided, and the map names the new cell",
    ),
    "a run that reaches the source late does not look who holds the move": (
        17,
        "both cells work on the half messages and deliveries of the moved topic",
    ),
    "the source is not purged with the end of its fence": (
        13,
        "both cells work on the half messages and deliveries of the moved topic",
    ),
}


def test_a_split_loses_no_acknowledged_message_and_its_topics_have_one_cell() -> None:
    checked = check(MODEL)

    assert checked.counterexample is None, checked
    assert checked.states == 6_609


@pytest.mark.parametrize("twin", TWINS)
def test_the_model_of_split_is_refuted_without_one_of_its_guards(twin: str) -> None:
    counterexample = check(TWINS[twin]).counterexample

    assert counterexample is not None
    assert (len(counterexample.steps), counterexample.fault) == REFUTED[twin], counterexample
