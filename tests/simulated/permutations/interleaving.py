"""Plays every interleaving of the steps of some sessions on a real PostgreSQL.

A session is a piece of the product's code with a connection of its own, and a step is one round trip of that
connection. No step begins before the engine chooses its session. A step that waits for a lock of another session is
seen by `pg_blocking_pids`: it stays under way, and the other sessions go on. The search is depth first: each run
repeats the choices of the run before, up to the last choice that has an alternative, and takes that alternative.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.simulated.permutations.sessions import Session, SteppingConnection, Work

BLOCKING = "SELECT pg_blocking_pids(%s)"
# A statement that has no answer by then may wait for a lock.
LOOK_SECONDS = 0.02


class Deadlocked(AssertionError):
    """Every session that is left waits for another one."""


@dataclass
class Run:
    """One interleaving: the steps in their order, the answer of each session, and which session ended before which."""

    steps: list[tuple[str, bytes]] = field(default_factory=list)
    choices: list[tuple[int, int]] = field(default_factory=list)
    answers: dict[str, object] = field(default_factory=dict)
    before: set[tuple[str, str]] = field(default_factory=set)


class Interleaving:
    """Plays sessions step by step; two texts that are `fused` are steps of a session with none of another one between.

    They may be where no other session reads or writes what one of the two does: the order makes no difference then.
    """

    def __init__(self, watch: psycopg.Connection[Any], fused: Callable[[bytes, bytes], bool]) -> None:
        self._watch = watch
        self._fused = fused

    async def play(self, sessions: Mapping[str, tuple[SteppingConnection, Work]], prefix: list[int]) -> Run:
        """One run: takes the choices of the prefix, then the first session that can go on. Raises Deadlocked."""
        run = Run()
        live = [Session(name, connection, work(connection)) for name, (connection, work) in sessions.items()]
        begun: set[str] = set()
        try:
            for session in live:
                session.connection.is_stepping = True
                await session.start()
            while ready := self._ready(live):
                number = len(run.choices)
                chosen = prefix[number] if number < len(prefix) else 0
                assert chosen < len(ready), f"a repeated run went another way at step {number}: {run.steps}"
                run.choices.append((chosen, len(ready)))
                session = ready[chosen]
                if session.name not in begun:
                    begun.add(session.name)
                    run.before |= {(other.name, session.name) for other in live if other.is_over}
                await self._advance(session, live, run)
        finally:
            for session in live:
                session.connection.is_stepping = False
                with contextlib.suppress(RuntimeError):  # of a run that failed: what it cleans up has no engine
                    session.coroutine.close()
        run.answers = {session.name: session.answer for session in live}
        return run

    def _ready(self, live: Iterable[Session]) -> list[Session]:
        left = [one for one in live if not one.is_over]
        ready = [one for one in left if not one.is_blocked]
        if left and not ready:
            raise Deadlocked(f"all of {[one.name for one in left]} wait for each other")
        return ready

    async def _advance(self, session: Session, live: list[Session], run: Run) -> None:
        """Has a session make its step and those that are fused with it; then those go on that it has kept waiting."""
        while True:
            assert session.step is not None
            text = session.step.text
            run.steps.append((session.name, text))
            session.begin()
            if not self._is_done(session, live):
                return
            await session.go_on()
            await self._wake(live, run)
            if session.step is None or session.is_blocked or not self._fused(text, session.step.text):
                return

    async def _wake(self, live: list[Session], run: Run) -> None:
        """Finishes the steps that waited for what another session has just let go."""
        while woken := [one for one in live if one.is_blocked and self._is_done(one, live)]:
            for session in woken:
                run.steps.append((session.name, b"(goes on)"))
                await session.go_on()

    def _is_done(self, session: Session, live: list[Session]) -> bool:
        """Whether the step has its answer; False: it waits for a lock of another session of the run."""
        pids = {one.connection.pgconn.backend_pid for one in live if not one.is_over}
        seconds = 0.0 if session.is_blocked else LOOK_SECONDS
        while not session.is_answered(seconds):
            seconds = LOOK_SECONDS
            row = self._watch.execute(BLOCKING, (session.connection.pgconn.backend_pid,)).fetchone()
            if row is not None and pids.intersection(row[0]):
                session.is_blocked = True
                return False
        session.is_blocked = False
        return True


def following(choices: list[tuple[int, int]]) -> list[int] | None:
    """The choices by which the next run differs from this one; None behind the last run."""
    left = list(choices)
    while left and left[-1][0] + 1 == left[-1][1]:
        left.pop()
    return [*(chosen for chosen, _ in left[:-1]), left[-1][0] + 1] if left else None
