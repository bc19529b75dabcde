"""How long an answer of the database is waited for. A server that hangs says nothing, and breaks no connection.

The server's own time-outs end slow statements, but not the wait for a machine that is frozen or behind a network that
swallows packets: TCP has delivered everything, as far as this side can tell.

A request that has waited in vain does not wait for its next statements, until the database answers again. Its
`Patience` also knows whether it has sent a commit: from then on no failure means that nothing is stored.
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

# A request is answered within 5 s, also when the database is not.
REQUEST_SECONDS = 4.0
# Above the time-out of statements, 15 s, which ends those of a server that works.
WORK_SECONDS = 20.0
# A pool tries again by itself after 1, 2, 4, … seconds, until so many are over; then requests make it try. By psycopg's
# default of 300 a database that comes back after a minute would not be asked for another.
RECONNECT_SECONDS = 1.0
# Of psycopg: between two looks for a signal.
INTERVAL_SECONDS = 0.1
# What a server gets to end a statement whose caller has given it up. psycopg's own ten seconds would be added to the
# time of the request that gave it up.
CANCEL_SECONDS = 0.5

# Of PostgreSQL.
TRANSACTION_TIMEOUT_SINCE = 170000

# What a wait gets after one in vain: the answer may be here already.
LEAST_SECONDS = 0.01
# What a wait gets at least where the database answers: a slow one is no silent one.
SLOW_SECONDS = 0.7


class Unanswered(psycopg.OperationalError):
    """The server did not answer in time. The connection is closed: its answer may still come."""

    def __init__(self, waited_seconds: float) -> None:
        super().__init__(f"no answer within {waited_seconds:g} s")


class Patience:
    """How long one request or task waits for a database that answers nothing, and whether it has sent a commit.

    With `in_all` the limit is that of all it does, from here or from `renew` on.
    """

    def __init__(self, limit_seconds: float, *, in_all: bool = False) -> None:
        self.limit_seconds = limit_seconds
        self._until = time.monotonic() + limit_seconds if in_all else None
        # From before the COMMIT leaves on, unless the server refuses it.
        self.has_committed = False
        # When it has last waited in vain; None since the database has answered.
        self._silent_at: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether a wait has just ended in vain."""
        # What a request began may outlive the silence, and has this from the request.
        return self._silent_at is not None and time.monotonic() - self._silent_at <= self.limit_seconds

    @property
    def left_seconds(self) -> float:
        """How long the next wait may take."""
        if self.is_over:
            return LEAST_SECONDS
        if self._until is None:
            return self.limit_seconds
        return max(self._until - time.monotonic(), SLOW_SECONDS)

    def renew(self) -> None:
        """Begins anew, behind something long that needs no database."""
        if self._until is not None:
            self._until = time.monotonic() + self.limit_seconds

    @contextlib.contextmanager
    def waiting(self, pgconn: PGconn) -> Iterator[float]:
        """A wait for an answer on a connection, and how long it may take; raises Unanswered."""
        left = self.left_seconds
        try:
            yield left
        except _WaitTimeout:
            self.unanswered(left)
            # Its answer may still come.
            pgconn.finish()
            raise Unanswered(round(left, 1) or self.limit_seconds) from None
        self._silent_at = None

    def unanswered(self, waited_seconds: float) -> None:
        """A wait of this number of seconds has ended in vain."""
        if waited_seconds > LEAST_SECONDS:
            self._silent_at = time.monotonic()


# Of this request or task; None where none has set it.
_current: ContextVar[Patience | None] = ContextVar("database_patience", default=None)


def begin(limit_seconds: float, *, in_all: bool = False) -> None:
    """Sets the patience of a request that begins."""
    _current.set(Patience(limit_seconds, in_all=in_all))


@contextlib.contextmanager
def of(limit_seconds: float) -> Iterator[None]:
    """Sets another patience within the block, or within the function that it decorates."""
    token = _current.set(Patience(limit_seconds))
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Patience:
    """The patience of this request or task, or else that of work."""
    return _current.get() or Patience(WORK_SECONDS)


def has_committed() -> bool:
    """Whether this request or task has sent a commit that the server has not refused."""
    return current().has_committed


class PatientAsyncConnection(psycopg.AsyncConnection[Any]):
    """A connection whose waits are those of `current`.

    `is_patient` is for maintenance, whose statements take their time.
    """

    is_patient = False
    # Each transaction may have another session: a pooler stands between.
    is_shared = False
    # Of the cell as it was opened, and of the map from topics to cells by then; 0 where there is one cell.
    epoch = 0
    map_version = 0

    async def wait(self, gen: PQGen[Any], interval: float = INTERVAL_SECONDS, timeout: float | None = None) -> Any:
        """As psycopg's; raises Unanswered."""
        if timeout is not None or self.is_patient:
            return await super().wait(gen, interval, timeout)
        with current().waiting(self.pgconn) as left_seconds:
            try:
                return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, timeout=left_seconds)
            except asyncio.CancelledError:
                await self._give_up(gen)
                raise

    async def bound_transactions(self, seconds: int) -> None:
        """Has the server end the session when a transaction takes longer; only PostgreSQL 17 and later can.

        A client that is stopped in the middle of a pipeline counts as active: no other time-out of the server ends it.
        """
        if self.pgconn.server_version >= TRANSACTION_TIMEOUT_SINCE and not self.is_shared:
            await self.execute(f"SET transaction_timeout = '{seconds}s'".encode())

    async def _give_up(self, gen: PQGen[Any]) -> None:
        """Has the server end a statement whose wait was cancelled; closes the connection where it does not at once."""
        if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
            return
        try:
            await self.cancel_safe(timeout=CANCEL_SECONDS)
            await waiting.wait_async(gen, self.pgconn.socket, interval=INTERVAL_SECONDS, timeout=CANCEL_SECONDS)
        except QueryCanceled:
            pass  # as it was asked to
        except BaseException as problem:
            self.pgconn.finish()
            if not isinstance(problem, Exception):
                raise


class PatientConnection(psycopg.Connection[Any]):
    """The same for Django, where a patience is set: migrations wait as long as it takes."""

    def wait(self, gen: PQGen[Any], interval: float = INTERVAL_SECONDS, timeout: float | None = None) -> Any:
        """As psycopg's; raises Unanswered."""
        patience = _current.get()
        try:
            if timeout is not None or patience is None:
                return super().wait(gen, interval, timeout)
            with patience.waiting(self.pgconn) as left_seconds:
                return super().wait(gen, interval, left_seconds)
        except ReadOnlySqlTransaction:
            # It may have begun behind a fence: it would take no write for good, and a pool would hand it on.
            self.close()
            raise

    def commit(self) -> None:
        """As psycopg's. The transaction counts as committed from here on, unless the server refuses that."""
        patience = current()
        before = patience.has_committed
        patience.has_committed = before or self.pgconn.transaction_status != TransactionStatus.IDLE
        try:
            super().commit()
        except psycopg.Error:
            if not self.closed:
                patience.has_committed = before
            raise
