"""A connection that takes each transaction as one libpq pipeline: all its statements and its commit in one message.

1. `run` sends the statements of a transaction and one sync. PostgreSQL runs them in their order, each with a snapshot
   of its own, commits at the sync and answers: no lock is held while this process does anything else.
2. Several transactions may be under way; PostgreSQL runs them one after the other.
3. What the socket does not take at once stays in libpq's buffer and follows when the socket is ready.
4. The first statement that fails rolls its own transaction back, and `Failed` names the reason. The next transaction is
   not touched.
5. When the connection breaks, a transaction whose sync had not left is `NotSent`, and one behind the one in which the
   server ended the session is `NotBegun`; of every other one it is `Lost` whether it was committed.

Parameters leave before any answer is back: what a later statement needs of an earlier one stays in the server, in
registers (`set_config(…, true)`, which end with the transaction) that only hold numbers.
"""

import asyncio
import contextlib
import select
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
import structlog
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.pq.abc import PGconn, PGresult

from store.db import pooling, routing
from store.db.connections import Connection
from store.db.outcomes import Failed, Lost, NotBegun, NotSent, failure_of
from store.db.statements import RowType, Statement

logger = structlog.stdlib.get_logger(__name__)

# lock_timeout of a batch. A lock held longer belongs to a stuck session; what needs it is written stepwise.
LOCK_TIMEOUT = "100ms"
OWN = {"lock_timeout": LOCK_TIMEOUT.encode()}
# Ends a transaction whose client stopped in the middle of sending it.
TRANSACTION_SECONDS = 5

BINARY = pq.Format.BINARY
Results = Mapping[Statement[Any], PGresult]


class Call(NamedTuple):
    """A statement with its parameters in binary form, None for NULL; those that it does not name are passed over."""

    statement: Statement[Any]
    parameters: Mapping[str, bytes | None]


# Takes the answers of a transaction, or Failed, NotSent, NotBegun or Lost; once, and raises nothing.
Done = Callable[[Results | Exception], None]


class Exchange:
    """One transaction under way: which answers are to come, and what came."""

    __slots__ = ("done", "failure", "prepares", "results", "statements")

    def __init__(self, statements: Iterable[Statement[Any]], done: Done, *, prepares: bool = False) -> None:
        self.prepares = prepares
        self.statements = deque(statements)
        self.results: dict[Statement[Any], PGresult] = {}
        self.failure: Failed | None = None
        self.done = done

    def fail(self, problem: Exception) -> None:
        """Ends it; what had failed before the connection broke is known to be rolled back."""
        self.done(self.failure or problem)


class Pipeline:
    """One connection in pipeline mode, in the event loop that opened it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pgconn: PGconn = connection.pgconn
        # By number: of a broken connection libpq names no socket any more.
        self._socket = self._pgconn.socket
        self._loop = asyncio.get_running_loop()
        self._under_way: deque[Exchange] = deque()
        self._prepared: set[Statement[Any]] = set()
        self._limits = (Call(pooling.SET_LOCK_TIMEOUT, OWN),) if connection.is_shared else ()
        self._unsent = False
        # With what the server ended the session.
        self._end: Failed | None = None
        self._hang_up = select.poll()
        self._hang_up.register(self._socket, 0)
        self.is_open, self.map_version = True, connection.map_version
        self._pgconn.notice_handler = _log_notice
        self._pgconn.nonblocking = 1
        self._pgconn.enter_pipeline_mode()
        self._loop.add_reader(self._socket, self._readable)

    @property
    def pid(self) -> int:
        """The process of the server behind the connection."""
        return self._pgconn.backend_pid

    def run(self, calls: Sequence[Call]) -> asyncio.Future[Results]:
        """Sends the calls as one transaction; the result has each statement's answer after the commit.

        The result raises Failed, NotSent, NotBegun or Lost. A statement comes once in a transaction.
        """
        future: asyncio.Future[Results] = self._loop.create_future()
        self.send(calls, lambda outcome: _resolve(future, outcome))
        return future

    def send(self, calls: Sequence[Call], done: Done) -> None:
        """As `run`; `done` is called as soon as the outcome is read, in the same turn of the event loop."""
        calls = (*self._limits, *calls)
        exchange = Exchange((call.statement for call in calls), done)
        if not self.is_open:
            exchange.fail(NotSent("the connection is closed"))
            return
        try:
            self._prepare([call.statement for call in calls if call.statement not in self._prepared])
            for statement, parameters in calls:
                values = [parameters[name] for name in statement.parameters]
                self._pgconn.send_query_prepared(statement.handle, values, [BINARY] * len(values), BINARY)
            self._pgconn.pipeline_sync()
            self._under_way.append(exchange)
        except psycopg.Error as problem:
            self._under_way.append(exchange)
            self._unsent = True
            self._break(problem)
            return
        self._flush()

    def close(self, problem: Exception | None = None) -> None:
        """Closes the connection; what is under way fails."""
        self._break(problem or psycopg.OperationalError("the connection was closed"))

    def _prepare(self, statements: Sequence[Statement[Any]]) -> None:
        """In a transaction of its own: a failed one would leave the statements behind its failure unprepared."""
        if not statements:
            return
        exchange = Exchange(statements, _pass_over, prepares=True)
        for statement in statements:
            self._pgconn.send_prepare(statement.handle, statement.numbered)
        self._pgconn.pipeline_sync()
        self._under_way.append(exchange)
        self._prepared.update(statements)

    def _flush(self) -> None:
        try:
            unsent = bool(self._pgconn.flush())
        except psycopg.Error as problem:
            self._unsent = True
            self._break(problem)
            return
        if unsent and not self._unsent:
            self._loop.add_writer(self._socket, self._flush)
        elif self._unsent and not unsent:
            self._loop.remove_writer(self._socket)
        self._unsent = unsent

    def _readable(self) -> None:
        try:
            self._receive()
            # uvloop names a connection that was reset once, and watches it no more: it is read until that is an error.
            while self.is_open and self._hang_up.poll(0):
                self._receive()
        except psycopg.Error as problem:
            self._break(problem)

    def _receive(self) -> None:
        self._pgconn.consume_input()
        if self._unsent:
            self._flush()
        while self.is_open and not self._pgconn.is_busy() and self._under_way:
            result = self._pgconn.get_result()
            if result is not None:
                self._take(result)
            elif self._pgconn.status == pq.ConnStatus.BAD:
                # libpq has given it up, for want of memory or over an answer that is none: nothing more comes, and it
                # waits for nothing.
                self._break(psycopg.OperationalError("libpq gave up the connection"))

    def _take(self, result: PGresult) -> None:
        exchange = self._under_way[0]
        status = result.status
        if status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            exchange.results[exchange.statements.popleft()] = result
        elif status == pq.ExecStatus.PIPELINE_SYNC:
            self._under_way.popleft()
            if exchange.failure is not None:
                exchange.fail(exchange.failure)
                if exchange.prepares:
                    logger.error("a statement could not be prepared", problem=str(exchange.failure))
                    if self._under_way:
                        # The batch behind it names a statement that is not there: it is rolled back for certain.
                        self._under_way.popleft().fail(exchange.failure)
                    self.close()
            elif exchange.statements and not exchange.prepares:
                # libpq itself could not read an answer: the server went on, and may have committed.
                exchange.fail(Lost("an answer could not be read"))
            else:
                exchange.done(exchange.results)
        elif status == pq.ExecStatus.FATAL_ERROR:
            self._failed(exchange, result)
        # What is left are PIPELINE_ABORTED: the statements behind a failed one.

    def _failed(self, exchange: Exchange, result: PGresult) -> None:
        failure = failure_of(result)
        if failure is not None and failure.ends_session:
            self._end = failure
            if not exchange.statements:
                # It may have been committed all the same: the server ended the session after its last statement.
                return
        exchange.failure = exchange.failure or failure

    def _break(self, problem: Exception) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        with contextlib.suppress(psycopg.Error):
            self._take_the_last()
        self._pgconn.finish()
        under_way, self._under_way = self._under_way, deque()
        # Its sync is the last thing in the buffer, so it has not left.
        unsent = under_way[-1] if self._unsent and under_way else None
        for number, exchange in enumerate(under_way):
            if number and self._end is not None:
                # The server answers in order, and its last word came before the end of the first one.
                exchange.fail(NotBegun(self._end))
            elif exchange is unsent:
                exchange.fail(NotSent(type(problem).__name__))
            else:
                exchange.fail(Lost(type(problem).__name__))

    def _take_the_last(self) -> None:
        """Takes what libpq read before the connection broke: why the server ended it. It reads when it cannot send."""
        nones = 0
        # One stands between the answers of two statements; two of them are the end.
        while self._under_way and nones < 2 and not self._pgconn.is_busy():
            result = self._pgconn.get_result()
            nones = 0 if result is not None else nones + 1
            if result is not None:
                self._take(result)


def _resolve(future: asyncio.Future[Results], outcome: Results | Exception) -> None:
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
        # It may be that nothing waits for it any more.
        future.exception()
    else:
        future.set_result(outcome)


def _pass_over(outcome: Results | Exception) -> None:
    """Nothing waits for a preparation: the transaction behind it fails with it."""


def rows(results: Results, statement: Statement[RowType]) -> Sequence[RowType]:
    """The rows of a statement's answer; none when there is no answer. Of a session whose time zone is UTC."""
    if (result := results.get(statement)) is None:
        return ()
    loaders = Transformer()
    loaders.set_pgresult(result)
    return loaders.load_rows(0, result.ntuples, statement.rows(None))


def found(read: Results | Exception) -> Results:
    """The answers of a transaction that only reads; none when it failed: what it reads can be read again."""
    if isinstance(read, Exception):
        logger.info("what a batch wrote was not read with it", reason=str(read))
        return {}
    return read


async def open_pipeline(application: str) -> Pipeline:
    """A connection for pipelines, with short waits for locks; raises psycopg's OperationalError."""
    connection = await routing.connect(application)
    try:
        if not connection.is_shared:
            await connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'".encode())
        await connection.bound_transactions(TRANSACTION_SECONDS)
        return Pipeline(connection)
    except BaseException:
        await connection.close()
        raise


def _log_notice(notice: PGresult) -> None:
    logger.info("the database says", notice=notice.error_message.decode("utf-8", "replace").strip())
