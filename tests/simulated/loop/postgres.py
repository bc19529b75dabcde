"""A PostgreSQL of a few tables, in memory: the commit log, its queues, locks, sessions, what a cell knows of itself.

A statement is answered by a function, found by its handle or text. What a transaction writes is kept by its session
until the commit. A lock that another session holds raises MustWait; whoever runs the statement runs it again when it is
free.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple
from uuid import UUID

from store.db import outcomes
from store.db.statements import Statement

LOCK_TIMEOUT = re.compile(r"lock_timeout = '(\d+)(m?s)'")

Queue = tuple[int, int]
Rows = Sequence[Any]


class ServerError(Exception):
    """An error that the server answers; `ends_session` where it closes the connection behind it."""

    def __init__(self, code: str, *, ends_session: bool = False, constraint: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.ends_session = ends_session
        self.constraint = constraint


class MustWait(Exception):
    """Another session holds a lock."""


class Stored(NamedTuple):
    """Where a message is: its log offset and its place in its queue."""

    log_offset: int
    queue: Queue
    queue_offset: int


@dataclass(eq=False)
class Backend:
    """The server's side of one session, and what its transaction has written so far."""

    database: "Database"
    pid: int
    application: str
    is_read_only: bool
    is_gone: bool = False
    is_in_transaction: bool = False
    is_failed: bool = False
    lock_seconds: float = 3.0
    silence_seconds: float | None = None
    appended: dict[bytes, tuple[int, Queue]] = field(default_factory=dict)
    entered: list[tuple[Queue, bytes]] = field(default_factory=list)
    locked_queues: set[Queue] = field(default_factory=set)
    notices: list[tuple[str, str]] = field(default_factory=list)
    listens_to: set[str] = field(default_factory=set)
    #: Has its client hear what came for it, and that an administrator has ended the session.
    told: Callable[[], None] = lambda: None
    kicked: Callable[[], None] = lambda: None

    def hold(self, name: object) -> None:
        """Takes a lock until the end of the transaction."""
        holder = self.database.locks.setdefault(name, self)
        if holder is not self:
            raise MustWait

    def append(self, key: bytes, queue: Queue) -> int:
        """The log offset of a message that this transaction adds. The unique index waits for other transactions."""
        if self.is_read_only:
            raise ServerError("25006")
        if queue[0] in self.database.guard:
            raise ServerError("23514", constraint=outcomes.GUARD)
        self.hold(("key", key))
        if key in self.database.stored or key in self.appended:
            raise ServerError("23505")
        self.appended[key] = (next(self.database.log_offsets), queue)
        return self.appended[key][0]

    def enter(self, queue: Queue, key: bytes) -> int:
        """The queue offset of a message that this transaction makes visible."""
        self.hold(("queue", queue))
        self.entered.append((queue, key))
        before = sum(entered == queue for entered, _ in self.entered)
        return len(self.database.queues.get(queue, ())) + before - 1

    def commit(self) -> None:
        """What the transaction wrote is there for all."""
        if not self.is_failed:
            for queue, key in self.entered:
                self.database.add(queue, key, self.appended[key][0])
        self.rollback()

    def rollback(self) -> None:
        """The transaction ends, and its locks are free."""
        self.appended, self.entered, self.locked_queues = {}, [], set()
        self.is_in_transaction = self.is_failed = False
        self.silence_seconds = None
        self.database.free(self)

    def end(self) -> None:
        """The session ends: its transaction is rolled back."""
        self.is_gone = True
        self.rollback()
        if self in self.database.backends:
            self.database.backends.remove(self)


class Database:
    """What the sessions of one server share."""

    def __init__(self, cell: int = 0) -> None:
        self.cell = cell
        self.segment = 1
        self.stored: dict[bytes, Stored] = {}
        self.queues: dict[Queue, list[bytes]] = {}
        #: The queues that have an entry in the open segment.
        self.begun: set[Queue] = set()
        self.log_offsets = count()
        self.locks: dict[object, Backend] = {}
        self.backends: list[Backend] = []
        self.pids = count(1)
        self.waiting: list[Callable[[], None]] = []
        self.epoch = 0
        self.map_version = 1
        self.fence_until: float | None = None
        self.departed: list[int] = []
        self.guard: frozenset[int] = frozenset()
        #: Of sessions that begin.
        self.is_read_only = False
        self.cells: list[Any] = []
        #: The messages whose commit has left their process, whatever became of that.
        self.maybe_committed: set[bytes] = set()
        self._statements: dict[bytes, tuple[Statement[Any], Callable[[Backend, Mapping[str, Any]], Rows]]] = {}
        self._by_text: dict[str, Callable[[Backend, Mapping[str, Any]], Rows]] = {}
        #: Answers the first message of a stepwise transaction, which no statement names.
        self.begins: Callable[[Backend, str], Rows] = lambda _, text: ()

    def answer(self, statement: Any, answer: Callable[[Backend, Mapping[str, Any]], Rows]) -> None:
        """Has a statement answered by a function."""
        self._statements[statement.handle] = (statement, answer)
        self._by_text[statement.text] = answer

    def session(self, application: str) -> Backend:
        """A session that begins."""
        backend = Backend(self, next(self.pids), application, self.is_read_only)
        self.backends.append(backend)
        return backend

    def run(self, backend: Backend, handle: bytes, values: Sequence[Any]) -> Rows:
        """The rows of a prepared statement. Raises ServerError or MustWait."""
        statement, answer = self._statements[handle]
        return answer(backend, dict(zip(statement.parameters, values, strict=True)))

    def run_text(self, backend: Backend, text: str, parameters: Mapping[str, Any]) -> Rows:
        """As `run`, of a statement that comes as text."""
        if (answer := self._by_text.get(text)) is not None:
            return answer(backend, parameters)
        if text.startswith("BEGIN;"):
            return self.begins(backend, text)
        if text.startswith("LISTEN "):
            backend.listens_to.add(text.removeprefix("LISTEN "))
        elif text.startswith("SET default_transaction_read_only"):
            backend.is_read_only = False
        elif not text.startswith(("SET ", "SELECT 1", "ALTER DATABASE")):
            raise KeyError(f"the simulated server does not know {text!r}")
        return ()

    def add(self, queue: Queue, key: bytes, log_offset: int) -> None:
        """A message is committed."""
        entries = self.queues.setdefault(queue, [])
        entries.append(key)
        self.begun.add(queue)
        self.stored[key] = Stored(log_offset, queue, len(entries) - 1)

    def roll(self) -> None:
        """Another segment is open."""
        self.segment += 1
        self.begun.clear()

    def free(self, backend: Backend) -> None:
        """The locks of a session are free; who waits for one tries again."""
        self.locks = {name: holder for name, holder in self.locks.items() if holder is not backend}
        waiting, self.waiting = self.waiting, []
        for again in waiting:
            again()

    def notify(self, channel: str, payload: str) -> None:
        """A notice for the sessions that listen to a channel."""
        for backend in self.backends:
            if channel in backend.listens_to:
                backend.notices.append((channel, payload))
                backend.told()


def id_of(key: bytes) -> UUID:
    """The message id whose bytes are a key."""
    return UUID(bytes=key)
