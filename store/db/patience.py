"""How long an answer of the database is waited for. A server that hangs says nothing, and breaks no connection.

The server's own time-outs end slow statements, but not the wait for a machine that is frozen or behind a network that
swallows packets: TCP has delivered everything, as far as this side can tell.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import psycopg
from psycopg.abc import PQGen
from psycopg.errors import _WaitTimeout

# A request is answered within 5 s, also when the database is not.
REQUEST_SECONDS = 4.0
# Above the time-out of statements, 15 s, which ends those of a server that works.
WORK_SECONDS = 20.0
# Of every session: the server ends that of a process which is gone without a word, its locks and its snapshot with it.
# The system's own limits are hours.
KEEPALIVES = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3"
# A pool tries again by itself after 1, 2, 4, … seconds, until so many are over; then requests make it try. By psycopg's
# default of 300 a database that comes back after a minute would not be asked for another.
RECONNECT_SECONDS = 1.0
# Of psycopg: between two looks for a signal.
INTERVAL_SECONDS = 0.1

# Of this request or task; None where none has set it.
seconds: ContextVar[float | None] = ContextVar("database_patience_seconds", default=None)


@contextlib.contextmanager
def of(limit_seconds: float) -> Iterator[None]:
    """Sets `seconds` within the block, or within the function that it decorates."""
    token = seconds.set(limit_seconds)
    try:
        yield
    finally:
        seconds.reset(token)


class Unanswered(psycopg.OperationalError):
    """The server did not answer in time. The connection is closed: its answer may still come."""

    def __init__(self, waited_seconds: float) -> None:
        super().__init__(f"no answer within {waited_seconds:g} s")


class PatientAsyncConnection(psycopg.AsyncConnection[Any]):
    """A connection that waits for each answer for `seconds`, or else WORK_SECONDS.

    `is_patient` is for maintenance, whose statements take their time.
    """

    is_patient = False

    async def wait(self, gen: PQGen[Any], interval: float = INTERVAL_SECONDS, timeout: float | None = None) -> Any:
        """As psycopg's; raises Unanswered."""
        if timeout is not None or self.is_patient:
            return await super().wait(gen, interval, timeout)
        limit = seconds.get() or WORK_SECONDS
        try:
            return await super().wait(gen, interval, limit)
        except _WaitTimeout:
            self.pgconn.finish()
            raise Unanswered(limit) from None


class PatientConnection(psycopg.Connection[Any]):
    """The same for Django, where `seconds` is set: migrations wait as long as it takes."""

    def wait(self, gen: PQGen[Any], interval: float = INTERVAL_SECONDS, timeout: float | None = None) -> Any:
        """As psycopg's; raises Unanswered."""
        limit = seconds.get()
        if timeout is not None or limit is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, limit)
        except _WaitTimeout:
            self.pgconn.finish()
            raise Unanswered(limit) from None
