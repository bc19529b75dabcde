"""The checker of models visits every state, and gives the shortest counterexample."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.simulated.models.checker import DEAD_END, Counterexample, TooManyStates, check


@dataclass(frozen=True)
class Counter:
    """A counter that goes up by one or by three to its end, and is wrong at some numbers."""

    end: int = 9
    wrong: frozenset[int] = frozenset()
    settled: frozenset[int] = frozenset({9})

    def first(self) -> int:
        return 0

    def steps(self, state: int) -> Iterator[tuple[str, int]]:
        for by in (1, 3):
            if state + by <= self.end:
                yield f"up by {by}", state + by

    def fault(self, state: int) -> str | None:
        return f"{state} is wrong" if state in self.wrong else None

    def is_settled(self, state: int) -> bool:
        return state in self.settled


def test_a_model_without_a_fault_holds_in_all_of_its_states() -> None:
    checked = check(Counter())

    assert (checked.states, checked.transitions, checked.counterexample) == (10, 16, None)
    assert str(checked) == "10 states, 16 transitions, holds"


def test_a_counterexample_has_the_fewest_steps_that_lead_to_a_fault() -> None:
    checked = check(Counter(wrong=frozenset({7, 8})))

    assert checked.counterexample == Counterexample("7 is wrong", ("up by 1", "up by 3", "up by 3"))
    assert str(checked.counterexample) == "refuted in 3 steps: 7 is wrong\n  1. up by 1\n  2. up by 3\n  3. up by 3"


def test_a_first_state_that_is_wrong_needs_no_step() -> None:
    assert check(Counter(wrong=frozenset({0}))).counterexample == Counterexample("0 is wrong", ())


def test_a_state_without_a_way_to_a_settled_one_is_a_dead_end() -> None:
    checked = check(Counter(settled=frozenset({6})))

    assert checked.counterexample == Counterexample(DEAD_END, ("up by 1", "up by 3", "up by 3"))


def test_a_model_that_has_lost_its_bound_is_not_visited_to_the_end() -> None:
    with pytest.raises(TooManyStates, match="Counter has more than 100 states"):
        check(Counter(end=1000), max_states=100)
