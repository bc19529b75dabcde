"""A connection that sends each transaction as one libpq pipeline: all statements and the commit in one message.

1. `run` sends the statements of a transaction and one sync. PostgreSQL executes them in order, each with its own
   snapshot, commits at the sync and answers: so no lock is held while this process does something else.
2. Several transactions may be under way; PostgreSQL runs them one after the other.
3. Bytes that the socket does not take at once stay in libpq's buffer and are sent when the socket is ready.
4. The first statement that fails rolls back its own transaction, and `Failed` gives the reason. The next transaction is
   not affected.
5. When the connection breaks, a transaction whose sync was not sent is `NotSent`. A transaction behind the one in which
   the server ended the session is `NotBegun`. Any other transaction is `Lost`: whether it was committed is unknown.

Parameters are sent before any answer has arrived. So values that one statement passes to a later one stay in the
server, in registers (`set_config(…, true)`, which end with the transaction) that hold numbers, or a fair group's key.
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

from store.db import libpq, pooling, routing
from store.db.connections import Connection
from store.db.outcomes import Failed, Lost, NotBegun, NotSent, failure_of
from store.db.statements import RowType, Statement

logger = structlog.stdlib.get_logger(__name__)

# The lock_timeout of a batch. An operation that waits longer for a lock is written stepwise.
LOCK_TIMEOUT = "100ms"
OWN = {"lock_timeout": LOCK_TIMEOUT.encode()}
# After this the server ends a transaction whose client has stopped in the middle of sending it.
TRANSACTION_SECONDS = 5

BINARY = pq.Format.BINARY
Results = Mapping[Statement[Any], PGresult]


class Call(NamedTuple):
    """A statement with parameters in binary form, None for NULL. Other parameters than its own are ignored."""

    statement: Statement[Any]
    parameters: Mapping[str, bytes | None]


# A function that is called once, with the answers of a transaction, or Failed, NotSent, NotBegun or Lost.
Done = Callable[[Results | Exception], None]


class Exchange:
    """A transaction under way: the statements without an answer yet, and the answers that have arrived."""

    __slots__ = ("done", "failure", "prepares", "results", "statements")

    def __init__(self, statements: Iterable[Statement[Any]], done: Done, *, prepares: bool = False) -> None:
        self.prepares = prepares
        self.statements = deque(statements)
        self.results: dict[Statement[Any], PGresult] = {}
        self.failure: Failed | None = None
        self.done = done

    def fail(self, problem: Exception) -> None:
        """Ends the transaction with `problem`, or with its own failure if it had one before."""
        self.done(self.failure or problem)


class Pipeline:
    """A connection in pipeline mode, in the event loop that opened it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pgconn: PGconn = connection.pgconn
        # The socket's number is kept here, because libpq no longer returns it when the connection is broken.
        self._socket = self._pgconn.socket
        self._loop = asyncio.get_running_loop()
        self._under_way: deque[Exchange] = deque()
        self._prepared: set[Statement[Any]] = set()
        self._limits = (Call(pooling.SET_LOCK_TIMEOUT, OWN),) if connection.is_shared else ()
        self._unsent = False
        # The error with which the server ended the session.
        self._end: Failed | None = None
        self._hang_up = select.poll()
        self._hang_up.register(self._socket, 0)
        self.is_open, self.map_version = True, connection.map_version
        self._pgconn.notice_handler = libpq.log_notice
        self._pgconn.nonblocking = 1
        self._pgconn.enter_pipeline_mode()
        self._loop.add_reader(self._socket, self._readable)

    @property
    def pid(self) -> int:
        """The id of the connection's server process."""
        return self._pgconn.backend_pid

    def run(self, calls: Sequence[Call]) -> asyncio.Future[Results]:
        """Sends the calls as one transaction. After the commit the future has the answer of each statement.

        The future raises Failed, NotSent, NotBegun or Lost. A transaction contains each statement at most once.
        """
        future: asyncio.Future[Results] = self._loop.create_future()
        self.send(calls, lambda outcome: _resolve(future, outcome))
        return future

    def send(self, calls: Sequence[Call], done: Done) -> None:
        """Does what `run` does, but calls `done` with the outcome, in the turn of the event loop that reads it."""
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
        """Closes the connection. Transactions under way fail."""
        self._break(problem or psycopg.OperationalError("the connection was closed"))

    def _prepare(self, statements: Sequence[Statement[Any]]) -> None:
        """Prepares statements in a separate transaction, because a failure ends the transaction in which it occurs."""
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
            # uvloop reports a reset connection once and stops watching, so the socket is read until a read fails.
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
                # libpq has given up the connection, for lack of memory or after an invalid answer: no answer follows,
                # and libpq is not busy.
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
                        # The next transaction uses the statement that was not prepared, so the server rolls it back.
                        self._under_way.popleft().fail(exchange.failure)
                    self.close()
            elif exchange.statements and not exchange.prepares:
                # libpq could not read an answer: the server has continued and may have committed.
                exchange.fail(Lost("an answer could not be read"))
            else:
                exchange.done(exchange.results)
        elif status == pq.ExecStatus.FATAL_ERROR:
            self._failed(exchange, result)
        # The only other status is PIPELINE_ABORTED, for statements after a failed one.

    def _failed(self, exchange: Exchange, result: PGresult) -> None:
        failure = failure_of(result)
        if failure is not None and failure.ends_session:
            self._end = failure
            if not exchange.statements:
                # The transaction may have been committed: the server ended the session after its last statement.
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
        if self._unsent:
            libpq.shut(self._socket)
        self._pgconn.finish()
        under_way, self._under_way = self._under_way, deque()
        # The end of the buffer, with the sync of the last transaction, was not sent.
        unsent = under_way[-1] if self._unsent and under_way else None
        for number, exchange in enumerate(under_way):
            if number and self._end is not None:
                # The server answers in order, and its last message came before the end of the first transaction.
                exchange.fail(NotBegun(self._end))
            elif exchange is unsent:
                exchange.fail(NotSent(type(problem).__name__))
            else:
                exchange.fail(Lost(type(problem).__name__))

    def _take_the_last(self) -> None:
        """Handles answers that libpq read before the connection broke, such as the server's reason."""
        nones = 0
        # libpq returns None once between the answers of two statements, and twice at the end.
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
        # If no caller waits any more, asyncio would log an exception that is never read.
        future.exception()
    else:
        future.set_result(outcome)


def _pass_over(outcome: Results | Exception) -> None:
    """Ignores the outcome of a preparation: if a preparation failed, the transaction after it fails too."""


def rows(results: Results, statement: Statement[RowType]) -> Sequence[RowType]:
    """The rows of a statement's answer; empty if there is none. The time zone of the session must be UTC."""
    if (result := results.get(statement)) is None:
        return ()
    loaders = Transformer()
    loaders.set_pgresult(result)
    return loaders.load_rows(0, result.ntuples, statement.rows(None))


def found(read: Results | Exception) -> Results:
    """The answers of a transaction that only reads; empty if it failed, because the rows can be read again."""
    if isinstance(read, Exception):
        logger.info("what a batch wrote was not read with it", reason=str(read))
        return {}
    return read


async def open_pipeline(application: str) -> Pipeline:
    """A connection for pipelines that waits for locks up to LOCK_TIMEOUT. Raises psycopg's OperationalError."""
    connection = await routing.connect(application)
    try:
        if not connection.is_shared:
            await connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'".encode())
        await connection.bound_transactions(TRANSACTION_SECONDS)
        return Pipeline(connection)
    except BaseException:
        await connection.close()
        raise
