"""Ends transactions whose process was stopped in the middle of sending them, because they keep their locks.

The poller ends such a transaction after TRANSACTION_SECONDS. When a batch has waited for a lock in vain, a stopped
process may hold the lock: for WATCH_SECONDS each look ends transactions whose process has sent nothing for
SILENT_SECONDS, so that the waiting batch continues within a second.
"""

import asyncio
import select
import time

import psycopg
import structlog

from store.db import connections
from store.db.connections import Connection
from store.db.pipeline import TRANSACTION_SECONDS
from store.db.statements import Statement
from store.errors import SystemBusy
from store.process import runtime
from store.rows import StalledWriter

logger = structlog.stdlib.get_logger(__name__)

# The most sessions that one look ends; the next look ends more.
MAX_SESSIONS = 100
# The longest time between the arrivals of two parts of a transaction. They usually are microseconds; the slowest
# network carries the largest transaction in this time.
SILENT_SECONDS = 0.4
LOOK_SECONDS = 0.1
WATCH_SECONDS = 1.0


class Ended(Exception):
    """The server ended a writer's session before the commit, so nothing was stored; its reason could not be read."""


def is_ended(problem: Exception, connection: Connection | None) -> bool:
    """Whether the server has ended this open session, as it does if the process was stopped or had no processor for
    long.

    The server's message with the reason is lost if the process was sending at that time.
    """
    return type(problem) is psycopg.OperationalError and connection is not None and connection.closed


def require_silent(connection: Connection) -> None:
    """Raises Ended if the server has sent something since its last answer: usually the news that it ends the session.

    Called before the commit is sent. Afterwards the message may be lost, and it would be unknown whether the server has
    committed.
    """
    look = select.poll()
    look.register(connection.pgconn.socket, select.POLLIN)
    if look.poll(0):
        raise Ended


END_STALLED_WRITERS = Statement(__file__, "end_stalled_writers", StalledWriter)


async def end(seconds: float = TRANSACTION_SECONDS, *, silent_seconds: float = 0.0) -> None:
    """Ends the sessions of writers that have not sent the rest of a transaction, as PostgreSQL 17 does by itself.

    Such a transaction has taken `seconds`, and its process has sent nothing for `silent_seconds`.
    """
    limits = {"seconds": seconds, "silent_seconds": silent_seconds, "max_rows": MAX_SESSIONS}
    for session in await connections.read(END_STALLED_WRITERS, limits):
        logger.warning(
            "a writer was stopped in the middle of a transaction", session=session.pid, ended=session.is_ended
        )


class Watch:
    """Ends stalled writers of other processes. It looks for them only while batches wait for locks in vain."""

    def __init__(self) -> None:
        self._home = runtime.here()
        self._task: asyncio.Task[None] | None = None
        self._until = 0.0

    def begin(self) -> None:
        """Looks for stalled writers for WATCH_SECONDS from now on."""
        self._until = time.monotonic() + WATCH_SECONDS
        if self._task is None or self._task.done():
            self._task = self._home.task(self._look(), "watch for stalled writers")

    async def _look(self) -> None:
        while time.monotonic() < self._until:
            try:
                await end(0, silent_seconds=SILENT_SECONDS)
            except SystemBusy as problem:
                logger.info("no look for stalled writers", reason=problem.detail)
            await asyncio.sleep(LOOK_SECONDS)

    async def close(self) -> None:
        """Stops looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def watch() -> None:
    """Called when a wait for a lock has failed: starts looking for a stopped process that holds the lock, to end its
    session.
    """
    runtime.part(Watch).begin()
