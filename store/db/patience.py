"""The time that a request waits for the database. A server that hangs sends no answer and does not close the
connection.

The server's own time-outs end slow statements. They do not end the wait for a machine that is frozen, or behind a
network that drops packets. After a request has waited in vain it does not wait for its next statements, until the
database answers again. Its `Patience` also knows whether it has sent a commit: after that, a failure does not prove
that nothing was stored.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import psycopg
from psycopg import waiting
from psycopg.abc import PQGen
from psycopg.errors import QueryCanceled, ReadOnlySqlTransaction, _WaitTimeout
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGconn

# A request is answered within 5 s, also when the database does not answer.
REQUEST_SECONDS = 4.0
# More than the statement time-out of 15 s, by which a server that works ends slow statements.
WORK_SECONDS = 20.0
# A pool connects again after 1, 2, 4, … seconds until this time is over; then only requests make the pool connect. With
# psycopg's default of 300 s a pool would notice a database that returns after a minute only a minute later.
RECONNECT_SECONDS = 1.0
# psycopg checks for signals at this interval.
INTERVAL_SECONDS = 0.1
# The time for the server to end a statement that its caller has cancelled. psycopg's default of 10 s would be added to
# the request's time.
CANCEL_SECONDS = 0.5

# The first version of PostgreSQL with `transaction_timeout`.
TRANSACTION_TIMEOUT_SINCE = 170000

# The limit of a wait that follows an unsuccessful wait. It is not 0, because the answer may have arrived meanwhile.
LEAST_SECONDS = 0.01
# Each wait may take at least this time while the database answers: a slow database is not away.
SLOW_SECONDS = 0.7


class Unanswered(psycopg.OperationalError):
    """The server did not answer in time. The connection is closed, because the answer may still come."""

    def __init__(self, waited_seconds: float) -> None:
        super().__init__(f"no answer within {waited_seconds:g} s")


class Patience:
    """How long one request or task waits for a database that does not answer, and whether it has sent a commit.

    The limit is for each wait; with `in_all` for all waits together, from the creation or from `renew` on.
    """

    def __init__(self, limit_seconds: float, *, in_all: bool = False) -> None:
        self.limit_seconds = limit_seconds
        self._until = time.monotonic() + limit_seconds if in_all else None
        # True from just before the COMMIT is sent, unless the server refuses the COMMIT.
        self.has_committed = False
        # The time of the last wait that ended without an answer; None if the database has answered since.
        self._silent_at: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether a wait has ended without an answer, and the database has not answered since."""
        # After some time the database is tried again, because a task that inherits this object may live longer than the
        # outage.
        return self._silent_at is not None and time.monotonic() - self._silent_at <= self.limit_seconds

    @property
    def left_seconds(self) -> float:
        """The seconds that the next wait may take."""
        if self.is_over:
            return LEAST_SECONDS
        if self._until is None:
            return self.limit_seconds
        return max(self._until - time.monotonic(), SLOW_SECONDS)

    def renew(self) -> None:
        """Restarts the limit, after long work without the database."""
        if self._until is not None:
            self._until = time.monotonic() + self.limit_seconds

    @contextlib.contextmanager
    def waiting(self, pgconn: PGconn) -> Iterator[float]:
        """A block that waits for an answer; yields how many seconds the block may wait. Raises Unanswered."""
        left = self.left_seconds
        try:
            yield left
        except _WaitTimeout:
            self.unanswered(left)
            # The connection is closed, because its answer may still arrive.
            pgconn.finish()
            raise Unanswered(round(left, 1) or self.limit_seconds) from None
        self._silent_at = None

    def unanswered(self, waited_seconds: float) -> None:
        """Notes that a wait of this number of seconds has ended without an answer."""
        if waited_seconds > LEAST_SECONDS:
            self._silent_at = time.monotonic()


# The patience of this request or task; None if none was set.
_current: ContextVar[Patience | None] = ContextVar("database_patience", default=None)


def begin(limit_seconds: float, *, in_all: bool = False) -> None:
    """Sets the time limit for waits of a request that begins."""
    _current.set(Patience(limit_seconds, in_all=in_all))


@contextlib.contextmanager
def of(limit_seconds: float) -> Iterator[None]:
    """Sets another time limit within the block, or within the function that it decorates."""
    token = _current.set(Patience(limit_seconds))
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Patience:
    """The patience of this request or task; by default a new one with WORK_SECONDS."""
    return _current.get() or Patience(WORK_SECONDS)


def has_committed() -> bool:
    """Whether this request or task has sent a commit that the server has not refused."""
    return current().has_committed


class PatientAsyncConnection(psycopg.AsyncConnection[Any]):
    """A connection whose waits are limited by `current()`.

    `is_patient`: for maintenance, whose statements may take long; its waits have no limit.
    """

    is_patient = False
    # Whether a pooler may give each transaction another session.
    is_shared = False
    # The cell's epoch and the version of the map from topics to cells at the opening; 0 with one cell.
    epoch = 0
    map_version = 0

    async def wait(self, gen: PQGen[Any], interval: float = INTERVAL_SECONDS, timeout: float | None = None) -> Any:
        """Waits like psycopg's method; also raises Unanswered.

        A wait with a time limit, such as for notices, wakes the process only at its end, not ten times a second.
        """
        if timeout is not None or self.is_patient:
            return await super().wait(gen, interval if timeout is None else timeout, timeout)
        with current().waiting(self.pgconn) as left_seconds:
            try:
                return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, timeout=left_seconds)
            except asyncio.CancelledError:
                await self._give_up(gen)
                raise

    async def bound_transactions(self, seconds: int) -> None:
        """Makes the server end the session when a transaction takes longer, on PostgreSQL 17 and later.

        A client that stops in the middle of a pipeline counts as active, so no other time-out of the server ends its
        session.
        """
        if self.pgconn.server_version >= TRANSACTION_TIMEOUT_SINCE and not self.is_shared:
            await self.execute(f"SET transaction_timeout = '{seconds}s'".encode())

    async def _give_up(self, gen: PQGen[Any]) -> None:
        """Makes the server end a statement whose wait was cancelled; closes the connection if this takes too long."""
        if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
            return
        try:
            await self.cancel_safe(timeout=CANCEL_SECONDS)
            await waiting.wait_async(gen, self.pgconn.socket, interval=INTERVAL_SECONDS, timeout=CANCEL_SECONDS)
        except QueryCanceled:
            pass  # the statement was cancelled, as this method has asked
        except BaseException as problem:
            self.pgconn.finish()
            if not isinstance(problem, Exception):
                raise


class PatientConnection(psycopg.Connection[Any]):
    """A PatientAsyncConnection for Django. If no patience is set, waits have no limit, as in migrations."""

    def wait(self, gen: PQGen[Any], interval: float = INTERVAL_SECONDS, timeout: float | None = None) -> Any:
        """Waits like psycopg's method; also raises Unanswered."""
        patience = _current.get()
        try:
            if timeout is not None or patience is None:
                return super().wait(gen, interval, timeout)
            with patience.waiting(self.pgconn) as left_seconds:
                return super().wait(gen, interval, left_seconds)
        except ReadOnlySqlTransaction:
            # The session is closed: if it began during a fence, it stays read-only, and the pool would use it again.
            self.close()
            raise

    def commit(self) -> None:
        """Commits like psycopg's method.

        From here on the transaction counts as committed, unless the server refuses the commit.
        """
        patience = current()
        before = patience.has_committed
        patience.has_committed = before or self.pgconn.transaction_status != TransactionStatus.IDLE
        try:
            super().commit()
        except psycopg.Error:
            if not self.closed:
                patience.has_committed = before
            raise
