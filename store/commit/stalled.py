"""Ends transactions whose process was stopped in the middle of sending them: their locks would stop other processes.

The poller ends those that have taken TRANSACTION_SECONDS. Where a batch has waited for a lock in vain, one may be held
that way: for WATCH_SECONDS each look ends those whose process has sent nothing for SILENT_SECONDS, so that what waits
goes on within a second.
"""

import asyncio
import select
import time
from typing import NamedTuple

import psycopg
import structlog

from store.db import connections
from store.db.connections import Connection
from store.db.pipeline import TRANSACTION_SECONDS
from store.db.statements import Statement
from store.errors import SystemBusy
from store.process import runtime

logger = structlog.stdlib.get_logger(__name__)

# Of one look; what is left is ended by the next one.
MAX_SESSIONS = 100
# The parts of a transaction follow each other in microseconds; the slowest network brings the largest in this time.
SILENT_SECONDS = 0.4
LOOK_SECONDS = 0.1
WATCH_SECONDS = 1.0


class StalledWriter(NamedTuple):
    """The session of a writer, and whether it could be ended."""

    pid: int
    is_ended: bool


class Ended(Exception):
    """The server ended a writer's session before the commit, and why was not read; nothing of it was stored."""


def is_ended(problem: Exception, connection: Connection | None) -> bool:
    """Whether an open session was lost to this: as that of a process which was stopped, or had no processor for long.

    What the server says of it comes no more where the process sends at that time.
    """
    return type(problem) is psycopg.OperationalError and connection is not None and connection.closed


def require_silent(connection: Connection) -> None:
    """Raises Ended where the server has said something since its last answer: that it ends the session, as a rule.

    Before a commit leaves: behind that the server's word may be lost, and so whether it has committed.
    """
    look = select.poll()
    look.register(connection.pgconn.socket, select.POLLIN)
    if look.poll(0):
        raise Ended


END_STALLED_WRITERS = Statement(__file__, "end_stalled_writers", StalledWriter)


async def end(seconds: float = TRANSACTION_SECONDS, *, silent_seconds: float = 0.0) -> None:
    """Ends the writers that wait for the rest of a transaction which has taken `seconds`, as PostgreSQL 17 does by
    itself, and of which nothing has come for `silent_seconds`."""
    limits = {"seconds": seconds, "silent_seconds": silent_seconds, "max_rows": MAX_SESSIONS}
    for session in await connections.read(END_STALLED_WRITERS, limits):
        logger.warning(
            "a writer was stopped in the middle of a transaction", session=session.pid, ended=session.is_ended
        )


class Watch:
    """Looks for stalled writers while locks are waited for in vain."""

    def __init__(self) -> None:
        self._home = runtime.here()
        self._task: asyncio.Task[None] | None = None
        self._until = 0.0

    def begin(self) -> None:
        """Has it look, for WATCH_SECONDS from now."""
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
        """Looks no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def watch() -> None:
    """To be called where a lock was waited for in vain: has what holds it ended if its process is stopped."""
    runtime.part(Watch).begin()
