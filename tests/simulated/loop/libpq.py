"""A connection as libpq has it, to the simulated server.

Each message to the server meets the weather of the run: it arrives late or never, is refused by the server, or the
connection breaks before the server has read it or behind its commit.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import pq
from psycopg.pq import PGnotify

from tests.simulated.loop.postgres import Backend, MustWait, ServerError
from tests.simulated.loop.weather import ERRORS, NOISY, Network

# As the product sets it for its batches.
LOCK_SECONDS = 0.1


class Result:
    """One answer of the server, as a PGresult has it."""

    def __init__(self, status: pq.ExecStatus, rows: Any = (), error: ServerError | None = None) -> None:
        self.status = status
        self.rows = rows
        self._error = error
        self.error_message = b"" if error is None else error.code.encode()

    def get_value(self, row: int, column: int) -> bytes | None:
        found: bytes | None = self.rows[row]
        return found

    def error_field(self, name: pq.DiagnosticField) -> bytes | None:
        assert self._error is not None
        return {
            pq.DiagnosticField.SQLSTATE: self._error.code.encode(),
            pq.DiagnosticField.SEVERITY_NONLOCALIZED: b"FATAL" if self._error.ends_session else b"ERROR",
            pq.DiagnosticField.SOURCE_FILE: b"postgres.c",
            pq.DiagnosticField.MESSAGE_PRIMARY: self._error.code.encode(),
            pq.DiagnosticField.CONSTRAINT_NAME: self._error.constraint.encode(),
        }.get(name)


class Message:
    """One transaction of a pipeline on its way: its statements, with the handle of each and its values."""

    def __init__(self, statements: Sequence[tuple[bytes, Sequence[Any] | None]]) -> None:
        self.statements = statements

    @property
    def prepares(self) -> bool:
        """Whether it only prepares statements."""
        return all(values is None for _, values in self.statements)

    @property
    def values(self) -> list[Any]:
        """The values of all statements."""
        return [value for _, values in self.statements for value in values or ()]


class Pgconn:
    """libpq's connection: nonblocking and in pipeline mode, or that of a simulated psycopg connection."""

    server_version = 170000
    nonblocking = 0
    notice_handler: Any = None
    notify_handler: Any = None

    def __init__(self, network: Network, backend: Backend) -> None:
        self.network = network
        self.backend = backend
        self.number = network.socket()
        self.status = pq.ConnStatus.OK
        #: The server has ended the session, and this side has not read that.
        self.is_dead = False
        self._building: list[tuple[bytes, Sequence[Any] | None]] = []
        self._unsent: list[Message] = []
        self._inbox: deque[Message] = deque()
        self._incoming: deque[Result] = deque()
        self._is_at_work = False
        backend.kicked = lambda: self._end([])

    @property
    def socket(self) -> int:
        return NOISY if self.is_dead else self.number

    @property
    def backend_pid(self) -> int:
        return self.backend.pid

    @property
    def transaction_status(self) -> pq.TransactionStatus:
        return pq.TransactionStatus.INTRANS if self.backend.is_in_transaction else pq.TransactionStatus.IDLE

    # This process's side.

    def enter_pipeline_mode(self) -> None:
        pass

    def send_prepare(self, handle: bytes, text: bytes) -> None:
        self._building.append((handle, None))

    def send_query_prepared(self, handle: bytes, values: Sequence[Any], *formats: Any) -> None:
        self._building.append((handle, values))

    def pipeline_sync(self) -> None:
        self._unsent.append(Message(self._building))
        self._building = []

    def flush(self) -> int:
        if self.status == pq.ConnStatus.BAD or self.is_dead:
            raise psycopg.OperationalError("the connection is broken")
        weather = self.network.weather
        is_half = bool(self._unsent) and weather.fault() == "half sent"
        leave, self._unsent = (self._unsent[:-1], self._unsent[-1:]) if is_half else (self._unsent, [])
        for message in leave:
            self._leave(message)
        if is_half:
            is_lost = self.network.loop.chance.one_in(2)
            rest = self.cut if is_lost else lambda: self.network.loop.writable(self.number)
            self.network.later(weather.latency(), rest)
        return int(is_half)

    def consume_input(self) -> None:
        if not self.is_dead:
            return
        # As long as the end of the connection was not read, there is something to read.
        self.network.loop.readable(self.number)
        if not self._incoming or self.network.loop.chance.one_in(2):
            self.status = pq.ConnStatus.BAD
            raise psycopg.OperationalError("the server closed the connection")

    def is_busy(self) -> bool:
        return not self._incoming

    def get_result(self) -> Result | None:
        return self._incoming.popleft() if self._incoming else None

    def hear(self, channel: str, payload: str) -> None:
        """A notice is read, in the middle of whatever reads."""
        if self.notify_handler is not None:
            self.notify_handler(PGnotify(channel.encode(), 1, payload.encode()))

    def finish(self) -> None:
        """This side closes the connection; what has left may still be done by the server."""
        if self.status == pq.ConnStatus.BAD and self.backend.is_gone:
            return
        self.status = pq.ConnStatus.BAD
        self._unsent.clear()
        if self._inbox and not self.backend.is_gone and self.network.loop.chance.one_in(2):
            while self._inbox:
                self._do(self._inbox.popleft())
        self._inbox.clear()
        self.backend.end()

    # The server's side.

    def _leave(self, message: Message) -> None:
        for value in message.values:
            for operation in value if isinstance(value, list) else ():
                operation.has_left = True
        self._inbox.append(message)
        self._work()

    def _work(self) -> None:
        if self._inbox and not self._is_at_work and not self.backend.is_gone:
            self._is_at_work = True
            self.network.later(self.network.weather.latency(), self._begin)

    def _begin(self) -> None:
        if self.backend.is_gone or not self._inbox:
            return
        fault = self.network.weather.fault()
        if fault == "silence":
            if self.network.loop.chance.one_in(2):
                self._do(self._inbox.popleft())
            return
        if fault == "hang":
            self.network.hang()
            self.network.later(0.0, lambda: self._run(""))
            return
        self._run(fault)

    def _run(self, fault: str, waited_until: float | None = None) -> None:
        if self.backend.is_gone or not self._inbox:
            return None
        if fault == "cut before":
            return self.cut()
        if fault == "ended before":
            return self._end([])
        if fault == "roll":
            self.network.database.roll()
        try:
            message = self._inbox[0]
            results = self._results(message, None if message.prepares else ERRORS.get(fault))
        except MustWait:
            return self._wait(fault, waited_until)
        self._inbox.popleft()
        self._is_at_work = False
        if fault == "cut behind":
            return self.cut()
        if fault == "ended behind":
            return self._end(results)
        self.receive([*results, Result(pq.ExecStatus.PIPELINE_SYNC)])
        self._work()
        return None

    def _wait(self, fault: str, until: float | None) -> None:
        """A lock is held by another session: the transaction is done over when it is free, within the time-out."""
        now = self.network.loop.time()
        until = until or now + LOCK_SECONDS
        if now >= until:
            return self._run("lock")
        is_done = False

        def again() -> None:
            nonlocal is_done
            if not is_done:
                is_done = True
                self._run(fault, until)

        self.network.database.waiting.append(lambda: self.network.later(0.0, again))
        self.network.later(until - now, again)
        return None

    def _do(self, message: Message) -> None:
        """The server does what has left, and nobody hears of it."""
        try:
            self._results(message, None)
        except MustWait:
            return

    def _results(self, message: Message, error: str | None) -> list[Result]:
        """The answers to a message, whose transaction is committed or rolled back."""
        results: list[Result] = []
        failed: ServerError | None = None
        try:
            for number, (handle, values) in enumerate(message.statements):
                try:
                    if error is not None and number == len(message.statements) - 1:
                        raise ServerError(error)
                    rows = () if values is None else self.network.database.run(self.backend, handle, values)
                    results.append(Result(pq.ExecStatus.TUPLES_OK, rows))
                except ServerError as problem:
                    failed = problem
                    results.append(Result(pq.ExecStatus.FATAL_ERROR, error=problem))
                    left = len(message.statements) - number - 1
                    results += [Result(pq.ExecStatus.PIPELINE_ABORTED)] * left
                    break
        except MustWait:
            self.backend.rollback()
            raise
        if failed is None:
            self.backend.commit()
        else:
            self.backend.rollback()
        return results

    def receive(self, results: Sequence[Result]) -> None:
        """Answers have come."""
        self._incoming += results
        self.network.loop.readable(self.number)

    def cut(self) -> None:
        """The connection breaks; nobody says why."""
        self.backend.end()
        self.is_dead = True
        self.backend.told()
        self.network.loop.readable(self.number)

    def _end(self, results: Sequence[Result]) -> None:
        """The server ends the session, and says so."""
        self.backend.end()
        self.is_dead = True
        self.receive([*results, Result(pq.ExecStatus.FATAL_ERROR, error=ServerError("57P01", ends_session=True))])
