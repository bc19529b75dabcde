"""The database of an outbox: its rows, the turn, and a broker behind the drain that stores what is taken."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from store.messages.ids import new_id
from tests.simulated.loop.postgres import Backend, Database, Rows
from tests.simulated.loop.sessions import Connection, Cursor
from tests.simulated.loop.virtual import VirtualLoop, process, require
from tests.simulated.loop.weather import Network
from transactions.outboxes import fitness, source
from transactions.outboxes.listener import CHANNEL
from transactions.outboxes.rows import Described, Measured, Row, Waits

TOPICS = ("orders", "coupons")
# The server ends a session that says nothing within a transaction; enter_source.sql sets this time.
SILENCE_SECONDS = 20.0
TURN = source.TAKE_TURN.sql().as_string(None)
EXECUTED = re.compile(r"EXECUTE mqbroker_take_small \((\d+), (\d+)\)")
SMALL = re.compile(
    re.escape(source.TAKE_SMALL.text % {"max_rows": "ROWS", "max_bytes": "BYTES"})
    .replace("ROWS", r"(\d+)", 1)
    .replace("ROWS", r"\d+")
    .replace("BYTES", r"(\d+)", 1)
    .replace("BYTES", r"\d+")
)
Place = tuple[int, int]


@dataclass(eq=False)
class SourceBackend(Backend):
    """A session at the source, and what its transaction has deleted and set apart."""

    owner: str = field(default_factory=process.get)
    deleted: dict[Place, Row] = field(default_factory=dict)
    apart: dict[Place, str] = field(default_factory=dict)

    @property
    def outbox(self) -> "Outbox":
        assert isinstance(self.database, Outbox)
        return self.database

    def undo(self) -> None:
        """As ROLLBACK TO: the turn stays."""
        self.deleted, self.apart, self.is_failed = {}, {}, False

    def commit(self) -> None:
        if not self.is_failed:
            self.outbox.committed(self.deleted, self.apart)
        self.rollback()

    def rollback(self) -> None:
        self.undo()
        super().rollback()


class Outbox(Database):
    """The source: rows in the order of their commits, which is that of their numbers."""

    def __init__(self, of: VirtualLoop) -> None:
        super().__init__()
        self._loop = of
        self.notifies, self.is_direct = of.chance.one_in(2), of.chance.one_in(2)
        self.asleep = True
        self.rows: dict[Place, Row] = {}
        self.committed_at: dict[UUID, float] = {}
        self.refused: dict[UUID, str] = {}
        #: The messages that the broker has, in the order in which it stored them.
        self.messages: dict[UUID, float] = {}
        self._seq = 0
        for statement, answer in ANSWERS.items():
            self.answer(statement, answer)

    def session(self, application: str) -> Backend:
        backend = SourceBackend(self, next(self.pids), application, self.is_read_only)
        self.backends.append(backend)
        return backend

    def insert(self, rows: Sequence[tuple[str, str | None, str]], *, wakes: bool) -> None:
        """A producer's transaction commits; it notifies where it has read that the drain sleeps."""
        for topic, key, body in rows:
            self._seq += 1
            given: dict[str, Any] = dict.fromkeys(Row._fields)
            id_ = new_id()
            given |= {"slot": 0, "seq": self._seq, "id": str(id_), "topic": topic, "body": body, "sharding_key": key}
            self.rows[0, self._seq] = Row(**given)
            self.committed_at[id_] = self._loop.time()
        if wakes and self.notifies:
            self.notify(CHANNEL, "")

    def committed(self, deleted: Mapping[Place, Row], apart: Mapping[Place, str]) -> None:
        """A transaction of the drain ends: what it has deleted is stored, or set apart with a reason that is true."""
        for place, row in deleted.items():
            require(place in self.rows, "a row is taken by two transactions", place)
            id_ = UUID(row.id)
            if place in apart:
                require(row.body == "poison", "a row is set apart that the broker does not refuse", place, apart[place])
                self.refused[id_] = apart[place]
            else:
                require(id_ in self.messages, "a row is deleted whose message is not stored", place)
            del self.rows[place]

    def run_text(self, backend: Backend, text: str, parameters: Mapping[str, Any]) -> Rows:
        assert isinstance(backend, SourceBackend)
        if text == "ROLLBACK TO taken":
            backend.undo()
        elif text.startswith("BEGIN"):
            backend.is_in_transaction, backend.silence_seconds = True, SILENCE_SECONDS
            return self._begun(backend, text)
        elif not text.startswith(("PREPARE ", "SELECT count(set_config")) and text:
            return super().run_text(backend, text, parameters)
        return ()

    def _begun(self, backend: SourceBackend, text: str) -> Rows:
        if text.endswith("SAVEPOINT taken"):
            require(TURN in text, "a turn of another text")
            return [self._turn(backend)]
        found = EXECUTED.search(text) or SMALL.search(text)
        return () if found is None else self._small(backend, int(found[1]))

    def _turn(self, backend: SourceBackend) -> tuple[Any, ...]:
        place = min(self.rows, default=(None, None))
        is_mine = place[1] is not None or not self.asleep
        if is_mine:
            is_mine = self.locks.setdefault("turn", backend) is backend
        return (self.asleep, *place, is_mine)

    def _small(self, backend: SourceBackend, max_rows: int) -> Rows:
        turn = self._turn(backend)
        places = sorted(self.rows)[:max_rows]
        if not turn[-1] or not places:
            return [(*turn, len(places), *[None] * len(Row._fields))]
        return [(*turn, len(places), *row) for row in self.delete(backend, places)]

    def delete(self, backend: SourceBackend, places: Sequence[Place]) -> list[Row]:
        """Rows that a transaction deletes."""
        require(self.locks.get("turn") is backend, "rows are taken without the turn")
        found = {place: self.rows[place] for place in places if place in self.rows}
        backend.deleted |= found
        return list(found.values())


def _places(given: Mapping[str, Any]) -> list[Place]:
    return list(zip(given["slots"], given["seqs"], strict=True))


def _measure(backend: Any, given: Mapping[str, Any]) -> Rows:
    rows = [row for _, row in sorted(backend.outbox.rows.items()) if row.topic not in given["closed"]]
    return [Measured(row.slot, row.seq, 6, 6, 0, 0, 0, 0, 0) for row in rows[: given["max_rows"]]]


def _take(backend: Any, given: Mapping[str, Any]) -> Rows:
    found: Rows = backend.outbox.delete(backend, _places(given))
    return found


def _set_apart(backend: Any, given: Mapping[str, Any]) -> Rows:
    found: Rows = backend.outbox.delete(backend, _places(given))
    backend.apart |= dict(zip(_places(given), given["reasons"], strict=True))
    return found


def _fall_asleep(backend: Any, given: Mapping[str, Any]) -> Rows:
    # The sequence changes for all sessions at once.
    backend.outbox.asleep = given["asleep"]
    return ()


def _hold(backend: Any, _: object) -> Rows:
    return [0] if backend.outbox.locks.setdefault("turn", backend) is backend else []


ANSWERS: dict[Any, Any] = {
    source.DESCRIBE_SOURCE: lambda backend, _: [Described(backend.outbox.notifies, backend.outbox.is_direct)],
    source.LOOK_AT_OUTBOX: lambda backend, _: [Waits(len(backend.outbox.rows), None, False)],
    source.FIND_HOLDER: lambda backend, _: [f"pid {backend.pid}"],
    source.FIND_LOCKER: lambda backend, _: [f"mqbroker_outbox (pid {backend.pid})"],
    source.MEASURE_ROWS: _measure,
    source.TAKE_ROWS: _take,
    source.DELETE_ROWS: _take,
    source.SET_APART: _set_apart,
    source.FALL_ASLEEP: _fall_asleep,
    source.HOLD_STATE: _hold,
    fitness.FIND_OBSTACLES: lambda backend, _: [],
    fitness.FIND_MISSING_STATE: lambda backend, _: [],
}


class Info:
    """What a session knows of the source's server."""

    server_version = 170000

    def __init__(self, pid: int) -> None:
        self.backend_pid = pid

    def parameter_status(self, name: str) -> str:
        return "UTF8"


class SourceCursor(Cursor):
    """A cursor that closes itself, and hands out rows as they come."""

    async def __aenter__(self) -> "SourceCursor":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def stream(self, text: bytes, parameters: Mapping[str, Any], *, size: int) -> Any:
        await self.execute(text, parameters)
        for row in await self.fetchall():
            yield row


class SourceConnection(Connection):
    """A session of the drain at the source."""

    def __init__(self, network: Network, application: str) -> None:
        super().__init__(network, application)
        self.info: Any = Info(self.backend.pid)

    def cursor(self, **_: object) -> SourceCursor:
        return SourceCursor(self)

    def _result(self, text: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
        if text == "ROLLBACK TO taken" and self.backend.is_in_transaction:
            self.backend.is_failed = False
        return super()._result(text, parameters)
