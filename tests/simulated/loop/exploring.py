"""Runs a scenario under many schedules; a failure is shrunk to a short schedule and told with its trace."""

import contextlib
import hashlib
import logging
import random
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.test.utils import override_settings

from store.process import runtime
from tests.simulated.loop.chance import Chance
from tests.simulated.loop.virtual import Broken, VirtualLoop

# Runs that a failing schedule may be tried in while it is made shorter.
MOST_SHRINKING = 200
# The last lines of a trace that a failure is told with.
MOST_TOLD = 120


@dataclass(frozen=True)
class Scenario:
    """The real code of the product in a simulated loop: `play` is one run, and raises Broken."""

    name: str
    says: str
    play: Callable[[], Coroutine[Any, Any, None]]
    settings: Mapping[str, object] = field(default_factory=dict)
    #: Whether the callbacks of one process keep their turns, which is what the order of messages rests on.
    in_turn: bool = False


@dataclass(frozen=True)
class Outcome:
    """One run: how it failed, if it did, and the choices that lead there again."""

    seed: int
    schedule: Sequence[int]
    steps: int
    failure: str = ""
    trace: Sequence[str] = ()

    @property
    def broken(self) -> str:
        """Which property does not hold: failures with the same one count as one fault."""
        return self.failure.partition(":")[0]


@dataclass(frozen=True)
class Explored:
    """What came of many runs of one scenario."""

    scenario: str
    runs: int
    steps: int
    seconds: float
    distinct: int
    failure: Outcome | None


def explore(
    scenario: Scenario, seed: int, runs: int, until: Callable[[], bool] = lambda: False, *, shrinks: bool = True
) -> Explored:
    """Runs a scenario with the seeds from `seed` on, until one fails or `until` says so. `shrinks`: a failure."""
    began, steps, seen, outcome = time.process_time(), 0, set[int](), None
    done = 0
    with prepared(scenario):
        while done < runs and not until():
            outcome = run(scenario, seed + done)
            done += 1
            steps += outcome.steps
            seen.add(hash(tuple(outcome.schedule)))
            if outcome.failure:
                break
        failure = outcome if outcome is not None and outcome.failure else None
        taken = time.process_time() - began
        told = None
        if failure is not None:
            told = told_of(scenario, shrunk(scenario, failure) if shrinks else failure)
    return Explored(scenario.name, done, steps, taken, len(seen), told)


def run(scenario: Scenario, seed: int, schedule: Sequence[int] | None = None, *, traced: bool = False) -> Outcome:
    """One run, by a seed or by the schedule of an earlier run; within `prepared`."""
    chance = Chance(seed, schedule)
    trace: list[str] | None = [] if traced else None
    loop = VirtualLoop(chance, trace, in_turn=scenario.in_turn)  # type: ignore[abstract]  # a run has no sockets, signals and processes
    failure = ""
    with simulated(loop, seed):
        try:
            loop.run(scenario.play())
            if loop.unseen:
                raise Broken(f"an exception that nobody saw: {loop.unseen}")
        except Exception as problem:  # noqa: BLE001  whatever it is: the run has failed
            failure = str(problem) if isinstance(problem, Broken) else f"{type(problem).__name__}: {problem}"
    return Outcome(seed, chance.schedule, loop.steps, failure, trace or ())


def shrunk(scenario: Scenario, failure: Outcome) -> Outcome:
    """A run with the same fault whose schedule has fewer choices that are not the plain one; within `prepared`."""
    best = failure
    left = MOST_SHRINKING

    def try_(schedule: Sequence[int]) -> bool:
        nonlocal best, left
        left -= 1
        outcome = run(scenario, failure.seed, schedule)
        if outcome.broken != failure.broken:
            return False
        best = Outcome(failure.seed, trimmed(schedule), outcome.steps, outcome.failure)
        return True

    size = len(best.schedule)
    while size and left > 0:
        place = 0
        while place < len(best.schedule) and left > 0:
            choices = list(best.schedule)
            if any(choices[place : place + size]) and try_([*choices[:place], *choices[place + size :]]):
                continue
            plain = [0] * min(size, len(choices) - place)
            if any(choices[place : place + size]):
                try_([*choices[:place], *plain, *choices[place + size :]])
            place += size
        size //= 2
    return best


def trimmed(schedule: Sequence[int]) -> list[int]:
    """A schedule without the plain choices at its end, which a run takes by itself."""
    choices = list(schedule)
    while choices and not choices[-1]:
        choices.pop()
    return choices


def told_of(scenario: Scenario, outcome: Outcome) -> Outcome:
    """The same run again, with its trace; within `prepared`."""
    return run(scenario, outcome.seed, outcome.schedule, traced=True)


def report(scenario: str, outcome: Outcome) -> str:
    """A failure as it is printed: seed, schedule and the shrunk run."""
    schedule = trimmed(outcome.schedule)
    lines = [
        f"{scenario}: {outcome.failure or 'the failure did not come again'}",
        f"again: ./mq simulate {scenario} --seed {outcome.seed} --runs 1",
        f"schedule of {len(schedule)} choices: {' '.join(map(str, schedule))}",
        f"the shrunk run, {outcome.steps} steps:",
        *outcome.trace[-MOST_TOLD:],
    ]
    return "\n".join(lines)


def digest(outcomes: Sequence[Outcome]) -> str:
    """What differs as soon as one line of a trace or one choice of some runs does."""
    found = hashlib.sha256()
    for outcome in outcomes:
        found.update(repr((outcome.seed, outcome.failure, list(outcome.schedule), list(outcome.trace))).encode())
    return found.hexdigest()


@contextlib.contextmanager
def prepared(scenario: Scenario) -> Iterator[None]:
    """What all runs of a scenario share: settings, and logs that cost nothing."""
    configured = structlog.get_config()["processors"]
    before = list(configured)
    logging.disable(logging.CRITICAL)
    try:
        configured[:] = [_traced]
        with override_settings(**scenario.settings):
            yield
    finally:
        configured[:] = before
        logging.disable(logging.NOTSET)


def _traced(_: object, method: str, event: Any) -> Any:
    """Events of the product's log go to the trace of the run."""
    with contextlib.suppress(RuntimeError):
        loop = _running()
        if loop.trace is not None:
            loop.note("log", method, event.get("event"))
    raise structlog.DropEvent


def _running() -> VirtualLoop:
    if _current is None:
        raise RuntimeError("no run is under way")
    return _current


_current: VirtualLoop | None = None


@contextlib.contextmanager
def simulated(loop: VirtualLoop, seed: int) -> Iterator[None]:
    """The clock and the random numbers of this process are those of a run meanwhile; no runtime is installed."""
    global _current
    clock, numbers, before, control = time.monotonic, random.getstate(), _current, runtime._control
    # The product asks the module for the time: this is the one place that an event loop's clock does not reach.
    time.monotonic = loop.time
    random.seed(seed)
    _current = loop
    runtime.install(None)
    try:
        yield
    finally:
        time.monotonic = clock
        random.setstate(numbers)
        _current = before
        runtime.install(control)
