"""Quiet: the log held alone for a moment, in which nobody appends to it or publishes from it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from store import database
from store.database import Connection
from store.log import APPENDERS_LOCK
from store.statements import Statement

HOLD_LOG = Statement(__file__, "hold_log")

# Writers queue behind whoever waits for the batches under way, which take milliseconds.
WAIT = "500ms"


@asynccontextmanager
async def log_held(connection: Connection) -> AsyncIterator[None]:
    """A transaction that began after every batch under way had ended, and before which none begins.

    Raises psycopg's LockNotAvailable when a writer does not finish in time; nothing has changed then.
    """
    async with connection.transaction():
        await database.execute(connection, HOLD_LOG, {"lock_timeout": WAIT, "key": APPENDERS_LOCK})
        yield
