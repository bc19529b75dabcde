"""An explicit-state checker: visits every state that a model can reach, the nearest states first.

A model is a class with four methods. `first` gives the first state. `steps` gives the steps that a state allows, each
with its name and the state behind it. `fault` says what is wrong with a state, and `is_settled` whether no work is
left. States are immutable and hashable. A model holds where no state has a fault and each state has a way to a
settled state.
"""

from collections.abc import Hashable, Iterator
from typing import NamedTuple, Protocol, TypeVar

State = TypeVar("State", bound=Hashable)

# Some four seconds, and far above each model here: a model beyond it has lost its bound.
MAX_STATES = 200_000
DEAD_END = "no way leads from here to a settled state"


class Model(Protocol[State]):
    """A protocol as states and steps."""

    def first(self) -> State:
        """The state before the first step."""

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """The name of each step that is possible in a state, and the state behind it."""

    def fault(self, state: State) -> str | None:
        """The promise that a state breaks, as a sentence; None for a state that breaks none."""

    def is_settled(self, state: State) -> bool:
        """Whether no work is left: each other state must have a way to such a state."""


class Counterexample(NamedTuple):
    """The shortest way to a state with a fault: the names of its steps."""

    fault: str
    steps: tuple[str, ...]

    def __str__(self) -> str:
        lines = (f"  {number}. {step}" for number, step in enumerate(self.steps, 1))
        return "\n".join([f"refuted in {len(self.steps)} steps: {self.fault}", *lines])


class Checked(NamedTuple):
    """What a check has found. A model that is refuted has been visited up to the state with the fault only."""

    states: int
    transitions: int
    counterexample: Counterexample | None

    def __str__(self) -> str:
        size = f"{self.states:,} states, {self.transitions:,} transitions"
        return f"{size}, holds" if self.counterexample is None else f"{size}, {self.counterexample}"


class TooManyStates(Exception):
    """A model reaches more states than it was to have."""


def check(model: Model[State], max_states: int = MAX_STATES) -> Checked:
    """Visits the states of a model, the nearest first: a counterexample has no step too many.

    Raises TooManyStates beyond `max_states`.
    """
    states = [model.first()]
    numbers = {states[0]: 0}
    # By the number of a state: the state before it on the shortest way, the step between, and all states before it.
    came: list[tuple[int, str]] = [(0, "")]
    before: list[list[int]] = [[]]
    transitions = 0
    for number, state in enumerate(states):
        if (fault := model.fault(state)) is not None:
            return Checked(len(states), transitions, Counterexample(fault, _way(came, number)))
        for step, following in model.steps(state):
            transitions += 1
            at = numbers.setdefault(following, len(states))
            if at == len(states):
                if at >= max_states:
                    raise TooManyStates(f"{type(model).__name__} has more than {max_states:,} states")
                states.append(following)
                came.append((number, step))
                before.append([])
            before[at].append(number)
    stuck = _stuck(before, [number for number, state in enumerate(states) if model.is_settled(state)])
    counterexample = None if stuck is None else Counterexample(DEAD_END, _way(came, stuck))
    return Checked(len(states), transitions, counterexample)


def _way(came: list[tuple[int, str]], number: int) -> tuple[str, ...]:
    steps: list[str] = []
    while number:
        number, step = came[number]
        steps.append(step)
    return tuple(reversed(steps))


def _stuck(before: list[list[int]], settled: list[int]) -> int | None:
    """The nearest state without a way to a settled state; None where each state has a way."""
    reaches = bytearray(len(before))
    for number in settled:
        reaches[number] = 1
    for number in settled:
        for earlier in before[number]:
            if not reaches[earlier]:
                reaches[earlier] = 1
                settled.append(earlier)
    return None if (stuck := reaches.find(0)) < 0 else stuck
