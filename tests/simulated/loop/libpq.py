"""A connection as libpq has it, and the network to the simulated server, which loses, delays and cuts what it carries.

Each message to the server meets the weather of the run: it arrives late or never, is refused by the server, or the
connection breaks before the server has read it or behind its commit.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any

import psycopg
from psycopg import pq
from psycopg.pq import PGnotify

from tests.simulated.loop.postgres import Backend, Database, MustWait, ServerError
from tests.simulated.loop.virtual import VirtualLoop

# What the product polls for a hang-up is a file descriptor of the machine: one that says nothing, and one that has
# something to read for ever.
QUIET = [os.pipe()[0] for _ in range(64)]
_noisy, _noise = os.pipe()
os.write(_noise, b"x")
NOISY = _noisy

# The longest is what a busy server takes.
LATENCIES = (0.0005, 0.003, 0.04, 0.25)
LOCK_SECONDS = 0.1
CONNECT_TIMEOUT_SECONDS = 3.0
# A server that hangs goes on after one of these.
HANG_SECONDS = (0.5, 3.0, 6.0, 15.0)

# What the server answers in place of what was asked for.
ERRORS = {
    "deadlock": "40P01",
    "lock": "55P03",
    "crowded": "53300",
    "full": "53100",
    "read-only": "25006",
}
FAULTS = (*ERRORS, "ended before", "ended behind", "cut before", "cut behind", "silence", "hang", "roll", "half sent")


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


class Weather:
    """The faults that a run may meet: about half of all, so that runs differ in kind."""

    def __init__(self, loop: VirtualLoop, faults: Sequence[str] = FAULTS) -> None:
        self._loop = loop
        self.faults = [fault for fault in faults if loop.chance.one_in(2)]
        #: Of one run, and of a server that is quick before: waits that follow each other add up to more than a caller is
        #: promised.
        self.may_hang = loop.chance.one_in(2)
        self._latencies = LATENCIES[:-1] if self.may_hang else LATENCIES
        self.is_over = False

    def fault(self) -> str:
        """What the next message meets; empty as a rule."""
        if self.is_over or not self.faults or not self._loop.chance.one_in(6):
            return ""
        fault = self.faults[self._loop.chance.choose(len(self.faults))]
        if fault in ("silence", "hang"):
            if not self.may_hang:
                return ""
            self.may_hang = False
        self._loop.note("meets", fault)
        return fault

    def latency(self, *, is_step: bool = False) -> float:
        """How long the next message takes; the longest is too long for one of many steps."""
        latencies = LATENCIES[:-1] if is_step else self._latencies
        return latencies[self._loop.chance.choose(len(latencies))]


class Network:
    """The way to one server, and the server's own pace: while it hangs nothing happens there."""

    def __init__(self, loop: VirtualLoop, database: Database, weather: Weather) -> None:
        self.loop = loop
        self.database = database
        self.weather = weather
        self._hangs_until = 0.0
        self._sockets = 0

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Has the server do something, behind its hang if there is one."""

        def run() -> None:
            left = self._hangs_until - self.loop.time()
            if left > 0:
                self.later(left, call)
            else:
                call()

        self.loop.call_later(seconds, run, context=Context())

    def hang(self) -> None:
        """The server does nothing for a while."""
        seconds = HANG_SECONDS[self.loop.chance.choose(len(HANG_SECONDS))]
        self.loop.note("the server hangs for", seconds)
        self._hangs_until = self.loop.time() + seconds

    def socket(self) -> int:
        """The file descriptor of the next connection."""
        self._sockets += 1
        return QUIET[self._sockets % len(QUIET)]


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
        if self._inbox and self.network.loop.chance.one_in(2):
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
            return
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
