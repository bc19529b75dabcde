"""The two databases of a move, as the sessions of its real run find them."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import psycopg

from store.cells import sides
from store.db import fences
from store.db.health import READ_CLOCK
from store.db.outcomes import GUARD
from store.rows import Fenced, Ousted, Replay, SideFacts
from tests.simulated.loop import threads
from tests.simulated.loop.postgres import Backend, Database
from tests.simulated.loop.sql_answers import NOW
from tests.simulated.loop.virtual import loop, process, require
from tests.simulated.loop.weather import LATENCIES

CUT = "the server closed the connection unexpectedly"


class Standby:
    """What is behind a session of the move: a database, and, of the new one, how far it has replayed the other."""

    def __init__(self, database: Database, primary: Database | None = None) -> None:
        self.database = database
        self.primary = primary
        self.is_standby = primary is not None
        self.promoted_at: float | None = None
        #: Whether a run has begun what nothing may be written during.
        self.is_held = False
        self.movers: list[Session] = []
        #: Whether sessions of runs break.
        self.may_be_cut = False

    def expire(self) -> None:
        """A process that connects ends a fence whose time is over, unless its run holds it."""
        database = self.database
        is_over = database.fence_until is not None and loop().time() > database.fence_until
        if is_over and not self.is_held and "identity" not in database.locks:
            loop().note("the fence is over")
            self.lift()
            database.is_read_only = False

    def lift(self) -> None:
        self.database.epoch += 1
        self.database.fence_until, self.is_held = None, False

    def replay(self) -> None:
        """The standby has all that was committed so far."""
        assert self.primary is not None
        ours, theirs = self.database, self.primary
        ours.stored, ours.begun, ours.segment = dict(theirs.stored), set(theirs.begun), theirs.segment
        ours.queues = {queue: list(keys) for queue, keys in theirs.queues.items()}


class Session:
    """A session of a run, as psycopg's; a statement may find that it is cut."""

    def __init__(self, side: Standby) -> None:
        self._side = side
        self.backend = Backend(side.database, next(side.database.pids), fences.MOVER, False)
        self.owner = process.get()
        self.info = SimpleNamespace(backend_pid=self.backend.pid)
        self.description: object = None
        self._rows: Any = ()
        self._writes: list[Callable[[], None]] | None = None
        side.movers.append(self)

    def cursor(self, **_: object) -> "Session":
        return self

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def fetchall(self) -> Any:
        return self._rows

    def close(self) -> None:
        if self in self._side.movers:
            self._side.movers.remove(self)
        self.backend.end()

    def execute(self, text: Any, given: Mapping[str, Any] | None = None) -> None:
        words = text.decode() if isinstance(text, bytes) else text.as_string(None)
        self._wait()
        self._rows = self._answer(words, given or {})
        self.description = self._rows
        self._wait(is_done=True)

    def _wait(self, *, is_done: bool = False) -> None:
        chance = loop().chance
        threads.sleep(LATENCIES[chance.choose(2)])
        if self._side.may_be_cut and chance.one_in(120):
            loop().note("a session of the move is cut", "behind" if is_done else "before")
            self.close()
        if self.backend.is_gone:
            raise psycopg.OperationalError(CUT)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        self._writes = []
        try:
            yield
            self._wait()
            for write in self._writes:
                write()
            self.backend.rollback()
            self._wait(is_done=True)
        finally:
            self._writes = None
            self.backend.rollback()

    def _write(self, write: Callable[[], None]) -> None:
        if self._writes is None:
            write()
        else:
            self.backend.database.locks["identity"] = self.backend
            self._writes.append(write)

    def _answer(self, words: str, given: Mapping[str, Any]) -> Any:
        for statement, answer in ANSWERS.items():
            if words == statement.sql().as_string(None):
                return answer(self, self._side, given)
        database = self._side.database
        if words.startswith("ALTER DATABASE"):
            is_read_only = " SET " in words
            self._write(lambda: setattr(database, "is_read_only", is_read_only))
        elif "ADD CONSTRAINT" in words and GUARD in words:
            topics = frozenset(map(int, words.partition("'{")[2].partition("}")[0].split(",")))
            self._write(lambda: setattr(database, "guard", topics))
        elif "DROP CONSTRAINT" in words:
            self._write(lambda: setattr(database, "guard", frozenset()))
        elif not words.startswith("SET "):
            raise KeyError(words)
        return ()


def _look(session: Session, side: Standby, _: object) -> Any:
    database = side.database
    if side.promoted_at is not None and loop().time() >= side.promoted_at:
        side.is_standby = False
    is_fenced = database.fence_until is not None
    fixed = SideFacts(1, side.is_standby, "mq", True, database.cell, database.epoch, UUID(int=0), is_fenced, [], [], 0)
    return [fixed._replace(departed=list(database.departed))]


def _fence(session: Session, side: Standby, given: Mapping[str, Any]) -> Any:
    database = side.database
    epoch = database.epoch + 1

    def write() -> None:
        loop().note("fenced")
        database.epoch, database.fence_until = epoch, loop().time() + given["seconds"]

    session._write(write)
    return [Fenced(epoch, NOW)]


def _oust(session: Session, side: Standby, given: Mapping[str, Any]) -> Any:
    there = [one for one in side.database.backends if given["pids"] is None or one.pid in given["pids"]]
    for backend in there:
        backend.kicked()
    return [Ousted(one.pid, True) for one in there if not one.is_gone]


def _oust_movers(session: Session, side: Standby, given: Mapping[str, Any]) -> Any:
    for other in [one for one in side.movers if one is not session and one.backend.pid not in given["own"]]:
        other.close()
    return []


def _replay(session: Session, side: Standby, given: Mapping[str, Any]) -> Any:
    if loop().chance.one_in(3):
        side.replay()
        return [Replay(0, side.is_standby)]
    return [Replay(4096, side.is_standby)]


def _promote(session: Session, side: Standby, _: object) -> Any:
    if side.promoted_at is None:
        side.promoted_at = loop().time() + (0.0, 0.05, 1.0)[loop().chance.choose(3)]
    return [True]


def _hold(session: Session, side: Standby, given: Mapping[str, Any]) -> Any:
    database = side.database
    if database.fence_until is None or database.epoch != given["epoch"]:
        return []
    session._write(lambda: setattr(side, "is_held", True))
    return [database.epoch]


def _lift(session: Session, side: Standby, _: object) -> Any:
    if side.database.fence_until is None:
        return []
    session._write(side.lift)
    return [side.database.epoch + 1]


def _become(session: Session, side: Standby, given: Mapping[str, Any]) -> Any:
    require(not side.is_standby, "a standby becomes a cell before its promotion")
    database = side.database
    assert side.primary is not None
    epoch = side.primary.epoch + 1
    session._write(lambda: vars(database).update(epoch=epoch, fence_until=None))
    return ()


def _departed(session: Session, side: Standby, given: Mapping[str, Any]) -> Any:
    session._write(lambda: setattr(side.database, "departed", list(given["topics"])))
    return ()


def _nothing(*_: object) -> Any:
    return [0]


ANSWERS: dict[Any, Callable[[Session, Standby, Mapping[str, Any]], Any]] = {
    sides.LOOK_AT_SIDE: _look,
    fences.FENCE_CELL: _fence,
    fences.OUST_SESSIONS: _oust,
    fences.OUST_MOVERS: _oust_movers,
    sides.READ_POSITION: lambda *_: ["0/1"],
    sides.READ_REPLAY: _replay,
    sides.PROMOTE: _promote,
    fences.HOLD_FENCE: _hold,
    fences.LIFT_FENCE: _lift,
    fences.SET_DEPARTED: _departed,
    sides.BECOME_CELL: _become,
    READ_CLOCK: lambda *_: [None],
    **dict.fromkeys((sides.SKIP_NUMBERS, sides.NOTE_FIRST_NUMBERS, sides.PLACE_TOPICS), _nothing),
}
