"""Exploring: every interleaving of a scenario is played, and its outcome compared with those of serial orders."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import permutations
from types import MappingProxyType
from typing import Any

import psycopg

from tests.simulated.permutations.interleaving import Interleaving, Run, following
from tests.simulated.permutations.sessions import Work
from tests.simulated.permutations.stage import WRITER, Clock, StageConnection, connected

# By them a writer joins the log, which all share while no segment is rolled, and names queues that never change.
JOINS = ("pg_advisory_xact_lock_shared", "'mq.ending'")


class Scenario(ABC):
    """Sessions that meet, and what may come of it."""

    # Patterns of a step's text: no other session's step has to come right before it, or right behind it.
    inner: Sequence[str] = ()
    leading: Sequence[str] = JOINS
    # By which name a session's connection is known, where it is not that of a writer.
    applications: Mapping[str, str] = MappingProxyType({})
    # Sessions that have another connection in each run, because the server ends them.
    renewed: Sequence[str] = ()
    clock: Clock | None = None

    @abstractmethod
    async def begin(self) -> Mapping[str, Work]:
        """Makes what the sessions of one run meet about; returns their work by their names."""

    @abstractmethod
    async def outcome(self, answers: Mapping[str, object]) -> object:
        """The answers and what is stored, in the words of the model."""

    @abstractmethod
    def serial(self, order: Sequence[str]) -> object:
        """What the model says where the sessions come one after another in this order."""


class Wrong(AssertionError):
    """An outcome that no serial order has."""


@asynccontextmanager
async def stage(scenario: Scenario, names: Sequence[str]) -> AsyncIterator[dict[str, StageConnection]]:
    """A connection for each session."""
    found = {name: await connected(scenario.clock, scenario.applications.get(name, WRITER)) for name in names}
    try:
        yield found
    finally:
        for connection in found.values():
            await connection.close()


async def explore(scenario: Scenario, watch: psycopg.Connection[Any]) -> Counter[str]:
    """Plays all interleavings of a scenario; returns how often each outcome came.

    Raises Wrong for an outcome that no serial order has which respects what ended before the begin of what.
    """
    inner, leading = _any(scenario.inner), _any(scenario.leading)
    engine = Interleaving(watch, lambda text, following: bool(leading.search(text) or inner.search(following)))
    outcomes: Counter[str] = Counter()
    prefix: list[int] | None = []
    names = list(await scenario.begin())
    async with stage(scenario, names) as connections:
        while prefix is not None:
            works = await scenario.begin()
            segment_id = _open_segment(watch)
            for name in names:
                if name in scenario.renewed:
                    await connections[name].close()
                    connections[name] = await connected(scenario.clock, scenario.applications.get(name, WRITER))
                connections[name].segment_id = segment_id
            run = await engine.play({name: (connections[name], work) for name, work in works.items()}, prefix)
            outcome = await scenario.outcome(run.answers)
            allowed = [scenario.serial(order) for order in permutations(names) if _respects(order, run)]
            if outcome not in allowed:
                raise Wrong(f"{outcome}\nis none of {allowed}\nafter\n{told(run)}")
            outcomes[str(outcome)] += 1
            prefix = following(run.choices)
    return outcomes


def _open_segment(watch: psycopg.Connection[Any]) -> int:
    [segment_id] = watch.execute("SELECT id FROM segment WHERE state = 'open'").fetchone() or (0,)
    return int(segment_id)


def _any(patterns: Sequence[str]) -> re.Pattern[bytes]:
    return re.compile("|".join(patterns or ["(?!)"]).encode())


def _respects(order: Sequence[str], run: Run) -> bool:
    return all(order.index(first) < order.index(second) for first, second in run.before)


def told(run: Run) -> str:
    """The steps of a run, a line each."""
    return "\n".join(f"  {name}: {' '.join(text.decode().split())[:100]}" for name, text in run.steps)
