"""Psycopg's connection as the product uses it, with a simulated server behind it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import pq
from psycopg.errors import _WaitTimeout

from store.db import patience
from tests.simulated.loop.libpq import Pgconn
from tests.simulated.loop.postgres import LOCK_TIMEOUT, MustWait, ServerError
from tests.simulated.loop.weather import ERRORS, Network

CUT = "the server closed the connection unexpectedly"


class Adapters:
    """Takes what the product registers; nothing is adapted here."""

    def register_dumper(self, *given: object) -> None:
        pass


class Info:
    """What a session knows of its server."""

    dbname = "simulated"


class Cursor:
    """The rows of one statement."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self.description: object = None
        self.rownumber: int | None = None
        self.rowcount = 0

    async def execute(self, text: Any, parameters: Mapping[str, Any] | None = None, **_: object) -> "Cursor":
        words = text.decode() if isinstance(text, bytes) else text if isinstance(text, str) else text.as_string(None)
        self._rows = list(await self._connection.ask(words, parameters or {}))
        self.description, self.rowcount = (self._rows or None), len(self._rows)
        self.rownumber = 0 if self._rows else None
        return self

    def nextset(self) -> None:
        """The statements of one message have one result here."""

    async def fetchall(self) -> list[Any]:
        return self._rows

    async def fetchone(self) -> Any:
        return self._rows[0] if self._rows else None

    async def fetchmany(self, many: int) -> list[Any]:
        found, self._rows = self._rows[:many], self._rows[many:]
        return found


class Connection:
    """A session of the product's, as `PatientAsyncConnection`."""

    is_shared = is_patient = False
    epoch = map_version = 0
    prepare_threshold: int | None = 5
    prepared_max: int | None = 100

    def __init__(self, network: Network, application: str) -> None:
        self.network = network
        self.backend = network.database.session(application)
        self.pgconn = Pgconn(network, self.backend)
        self.adapters = Adapters()
        self.info = Info()
        self._asked = 0
        self._last_error = ""

    @property
    def closed(self) -> bool:
        return self.pgconn.status == pq.ConnStatus.BAD

    async def __aenter__(self) -> "Connection":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def execute(self, text: Any, parameters: Any = None, **more: object) -> Cursor:
        return await Cursor(self).execute(text, parameters)

    def cursor(self, **_: object) -> Cursor:
        return Cursor(self)

    async def bound_transactions(self, seconds: int) -> None:
        await self.execute(b"SET transaction_timeout = '1s'")

    async def commit(self) -> None:
        if self.backend.appended and not self.closed:
            self.network.database.maybe_committed |= set(self.backend.appended)
        await self.ask("COMMIT", {})

    async def rollback(self) -> None:
        await self.ask("ROLLBACK", {})

    async def notifies(self, *, timeout: float) -> AsyncIterator[psycopg.Notify]:
        """The notices that came, and those that come within the time; the product's handler hears each first."""
        until = self.network.loop.time() + timeout
        while True:
            while self.backend.notices:
                channel, payload = self.backend.notices.pop(0)
                self.pgconn.hear(channel, payload)
                yield psycopg.Notify(channel, payload, 1)
            left = until - self.network.loop.time()
            if self.pgconn.is_dead or self.closed:
                self.pgconn.finish()
                raise psycopg.OperationalError(CUT)
            if left <= 0:
                return
            came = asyncio.Event()
            self.backend.told = came.set
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await came.wait()

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        self.backend.is_in_transaction = True
        try:
            yield
        except BaseException:
            await self.rollback()
            raise
        await self.commit()

    async def close(self) -> None:
        self.pgconn.finish()

    async def ask(self, text: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """One message to the server and its answer. Raises psycopg's errors."""
        if self.closed:
            raise psycopg.OperationalError("the connection is closed")
        if self.pgconn.is_dead:
            self.pgconn.finish()
            raise self._error(self._last_error) if self._last_error else psycopg.OperationalError(CUT)
        with patience.current().waiting(self.pgconn) as left_seconds:  # type: ignore[arg-type]  # it finishes the connection
            answer = self._sent(text, parameters)
            try:
                async with asyncio.timeout(left_seconds):
                    found: Sequence[Any] = await answer
                    return found
            except TimeoutError:
                raise _WaitTimeout from None
            except asyncio.CancelledError:
                self._give_up()
                raise

    def _give_up(self) -> None:
        """The server is asked to end the statement: it does, or the connection is closed."""
        if self.network.loop.chance.one_in(2):
            self.pgconn.finish()
        elif self.backend.is_in_transaction:
            self.backend.is_failed = True

    def _sent(self, text: str, parameters: Mapping[str, Any]) -> "asyncio.Future[Sequence[Any]]":
        answer: asyncio.Future[Sequence[Any]] = asyncio.get_running_loop().create_future()
        weather = self.network.weather
        fault = weather.fault()
        self._asked += 1
        if fault == "hang":
            self.network.hang()
        if fault == "silence":
            if self.network.loop.chance.one_in(2):
                self.network.later(0.001, lambda: self._quietly(text, parameters))
            return answer
        self.network.later(weather.latency(is_step=True), lambda: self._done(text, parameters, fault, answer))
        return answer

    def _quietly(self, text: str, parameters: Mapping[str, Any]) -> None:
        with contextlib.suppress(MustWait, ServerError):
            self._result(text, parameters)

    def _done(
        self, text: str, parameters: Mapping[str, Any], fault: str, answer: Any, until: float | None = None
    ) -> None:
        """The server has a statement; `until`: how long it waits for its locks."""
        if answer.done():
            return None
        if fault == "roll":
            self.network.database.roll()
        if self.backend.is_gone or fault == "cut before":
            self.backend.end()
            return self._fail(answer, psycopg.OperationalError(CUT))
        try:
            # An end of a transaction writes nothing that could meet them.
            if fault == "ended before" or (fault in ERRORS and text not in ("COMMIT", "ROLLBACK")):
                raise ServerError(ERRORS.get(fault, "57P01"), ends_session=fault == "ended before")
            found = self._result(text, parameters)
        except MustWait:
            return self._wait(text, parameters, fault, answer, until)
        except ServerError as problem:
            return self._refuse(answer, problem)
        if fault in ("cut behind", "ended behind"):
            self.backend.end()
            return self._fail(answer, psycopg.OperationalError(CUT))
        self._watch_silence()
        answer.set_result(found)
        return None

    def _result(self, text: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
        if text == "COMMIT":
            self.backend.commit()
            return ()
        if text == "ROLLBACK":
            self.backend.rollback()
            return ()
        if self.backend.is_failed:
            raise ServerError("25P02")
        if found := LOCK_TIMEOUT.findall(text):
            number, unit = found[0]
            self.backend.lock_seconds = int(number) / (1000 if unit == "ms" else 1)
        rows = self.network.database.run_text(self.backend, text, parameters)
        if not self.backend.is_in_transaction and not text.startswith("BEGIN"):
            self.backend.commit()
        return rows

    def _wait(self, text: str, parameters: Mapping[str, Any], fault: str, answer: Any, until: float | None) -> None:
        now = self.network.loop.time()
        until = until or now + self.backend.lock_seconds
        if now >= until:
            return self._refuse(answer, ServerError("55P03"))
        is_done = False

        def again() -> None:
            nonlocal is_done
            if not is_done:
                is_done = True
                self._done(text, parameters, "", answer, until)

        self.network.database.waiting.append(lambda: self.network.later(0.0, again))
        self.network.later(until - now, again)
        return None

    def _refuse(self, answer: Any, problem: ServerError) -> None:
        if problem.ends_session:
            self.backend.end()
            return self._fail(answer, self._error(problem.code))
        self.backend.is_failed = self.backend.is_in_transaction
        self._watch_silence()
        answer.set_exception(self._error(problem.code, problem.constraint))
        return None

    def _fail(self, answer: Any, problem: Exception) -> None:
        self.pgconn.status = pq.ConnStatus.BAD
        answer.set_exception(problem)

    def _error(self, code: str, constraint: str = "") -> psycopg.Error:
        error = psycopg.errors.lookup(code)(code)
        if constraint:
            # What the server says beside the message; psycopg reads it of the answer itself.
            error._info = {pq.DiagnosticField.CONSTRAINT_NAME: constraint.encode()}
        return error

    def _watch_silence(self) -> None:
        """The server ends the session whose client says nothing within a transaction."""
        seconds, asked = self.backend.silence_seconds, self._asked
        if seconds is None or not self.backend.is_in_transaction:
            return

        def end() -> None:
            if self._asked == asked and self.backend.is_in_transaction and not self.backend.is_gone:
                self.network.loop.note("the server ends a silent session", self.backend.pid)
                self.backend.end()
                self.pgconn.is_dead = True
                self._last_error = "25P03" if self.network.loop.chance.one_in(2) else ""

        self.network.later(seconds, end)
