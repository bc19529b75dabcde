"""Sessions whose round trips wait for the engine: a connection, what runs on it, and the step that comes next."""

import asyncio
import contextvars
import select
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any, Self

import psycopg
from psycopg import sql
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

from store.db.patience import PatientAsyncConnection

# psycopg's numbers for what a generator waits for, and for what has come.
READABLE, WRITABLE = 1, 2

Work = Callable[["SteppingConnection"], Coroutine[Any, Any, object]]


class Step:
    """A round trip that a session is about to make."""

    def __init__(self, generator: PQGen[Any], text: bytes) -> None:
        self.generator = generator
        self.text = text

    def __await__(self) -> Generator["Step", Any, Any]:
        return (yield self)


class SteppingCursor(psycopg.AsyncCursor[Any]):
    """A cursor whose connection knows the text of the next round trip."""

    async def execute(self, query: Any, *given: Any, **options: Any) -> Self:
        assert isinstance(self.connection, SteppingConnection)
        self.connection.text = query if isinstance(query, bytes) else as_bytes(query, self.connection)
        return await super().execute(query, *given, **options)


class SteppingConnection(PatientAsyncConnection):
    """A connection whose round trips wait for the engine, once it is part of a run."""

    text = b""
    is_stepping = False

    async def commit(self) -> None:
        self.text = b"COMMIT"
        await super().commit()

    async def rollback(self) -> None:
        self.text = b"ROLLBACK"
        await super().rollback()

    async def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        if not self.is_stepping:
            return await super().wait(gen, interval, timeout)
        text, self.text = self.text or b"BEGIN OR COMMIT", b""
        return await Step(gen, text)


@dataclass
class Session:
    """A session of a run: its next step, or the answer that it has ended with."""

    name: str
    connection: SteppingConnection
    coroutine: Coroutine[Any, Any, object]
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    step: Step | None = None
    waits_for: int = 0
    is_blocked: bool = False
    is_over: bool = False
    answer: object = None

    def begin(self) -> None:
        """Sends the step, up to the point where the server has to answer."""
        assert self.step is not None
        try:
            self.waits_for = next(self.step.generator)
        except StopIteration as done:
            self.waits_for = 0
            self._done = (done.value, None)
        except psycopg.Error as problem:
            self.waits_for = 0
            self._done = (None, problem)

    def is_answered(self, seconds: float) -> bool:
        """Whether the step's answer is complete, looked for until that many seconds have passed without a byte."""
        poll = select.poll()
        while self.waits_for:
            wanted = (select.POLLIN if self.waits_for & READABLE else 0) | (
                select.POLLOUT if self.waits_for & WRITABLE else 0
            )
            poll.register(self.connection.pgconn.socket, wanted)
            found = poll.poll(seconds * 1000)
            if not found:
                return False
            [(_, events)] = found
            ready = (READABLE if events & ~select.POLLOUT else 0) | (WRITABLE if events & select.POLLOUT else 0)
            try:
                assert self.step is not None
                self.waits_for = self.step.generator.send(ready)
            except StopIteration as done:
                self.waits_for = 0
                self._done = (done.value, None)
            except psycopg.Error as problem:
                self.waits_for = 0
                self._done = (None, problem)
        return True

    async def go_on(self) -> None:
        """Has the session's code take the answer, up to its next step or its end."""
        value, problem = self._done
        await self._run(value, problem)

    async def start(self) -> None:
        """Has the session's code go up to its first step."""
        await self._run(None, None)

    async def _run(self, value: object, problem: psycopg.Error | None) -> None:
        self.is_blocked = False
        while True:
            try:
                if problem is None:
                    found = self.context.run(self.coroutine.send, value)
                else:
                    found = self.context.run(self.coroutine.throw, problem)
            except StopIteration as done:
                self.step, self.is_over, self.answer = None, True, done.value
                return
            if isinstance(found, Step):
                self.step = found
                return
            # A look-up of the product's caches, by another connection: no step of this session.
            found._asyncio_future_blocking = False
            await asyncio.wait([found])
            value, problem = None, None

    _done: tuple[Any, psycopg.Error | None] = (None, None)


def as_bytes(query: Any, connection: psycopg.AsyncConnection[Any]) -> bytes:
    """The text of a query that psycopg puts together."""
    return (query.as_string(connection) if isinstance(query, sql.Composable) else str(query)).encode()


def is_idle(connection: psycopg.AsyncConnection[Any]) -> bool:
    """Whether no transaction is under way."""
    return connection.pgconn.transaction_status == TransactionStatus.IDLE
