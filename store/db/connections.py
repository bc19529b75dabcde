"""The data plane's connections: a small pool for reads, and single connections for writers, listeners and maintenance.

A connection belongs to the event loop that opened it; a process has one loop.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import psycopg
import structlog
from django.conf import settings
from psycopg.errors import LockNotAvailable, QueryCanceled, ReadOnlySqlTransaction
from psycopg.rows import namedtuple_row
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from store.db import disk, fences, patience, pooling
from store.db.conninfo import conninfo, is_pooled
from store.db.patience import RECONNECT_SECONDS, PatientAsyncConnection, Unanswered
from store.db.statements import RowType, Statement
from store.errors import SystemBusy
from store.process import pacing, runtime
from store.process.runtime import Runtime

logger = structlog.stdlib.get_logger(__name__)

# The type of rows of a statement that is not a `Statement` and declares no row type.
Row = Any
Connection = PatientAsyncConnection

POOL_WAIT_SECONDS = 3.0
# The refusal of writes by a database that is read-only although the cell is not fenced.
READ_ONLY = "This database is read-only: nothing was stored. Ask a broker that is at the primary."
# The columns that may make a row large: the body of a message, or its properties if the body is not read.
LARGE = ("body", "properties")


class AnotherCell(psycopg.OperationalError):
    """The URL leads to another cell's database than expected; nothing is read or written there."""


async def connect(application: str, *, direct: bool = False) -> Connection:
    """A new connection to the cell of this task, in autocommit; the caller closes it.

    A `direct` connection does not use a pooler: it is for listening, or for settings and locks of its session.
    """
    opens = runtime.current().connects or PatientAsyncConnection.connect
    connection: Connection = await opens(
        conninfo(application, runtime.here().url, direct=direct), autocommit=True, row_factory=namedtuple_row
    )
    try:
        await _prepare(connection, runtime.here(), direct=direct)
    except BaseException:
        await connection.close()
        raise
    return connection


async def _prepare(connection: Connection, cell: Runtime, *, direct: bool = False) -> None:
    """Prepares a new connection for use. Raises AnotherCell."""
    connection.is_shared = settings.DATABASE_POOLER == pooling.TRANSACTION and is_pooled(cell.url, direct=direct)
    # Every int is sent as int8, so that a statement is prepared once, and not once for each width of its numbers.
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.prepare_threshold = 0
    # A pooler identifies a statement by its text, and decides itself when to drop the statement.
    connection.prepared_max = None if connection.is_shared else connection.prepared_max
    [identity] = await execute(connection, fences.IDENTIFY_CELL)
    if identity.cell_id != cell.cell:
        logger.error("a database is another cell's", wanted=cell.name, found=identity.cell_id)
        raise AnotherCell(f"the database at the URL of the cell {cell.name} is that of cell {identity.cell_id}")
    await fences.heed(connection, identity, cell)


class Reads:
    """The pool of connections of a process for one cell, in the event loop."""

    def __init__(self) -> None:
        self.home = runtime.here()
        self._pool: AsyncConnectionPool[Connection] | None = None
        self._opening = asyncio.Lock()
        self._is_closed = False

    async def pool(self) -> AsyncConnectionPool[Connection]:
        """The pool, opened at first use. Raises SystemBusy once it was closed."""
        async with self._opening:
            # The pool may have been closed while this waited.
            if self._is_closed:
                raise runtime.ending()
            if self._pool is None:
                self._pool = AsyncConnectionPool(
                    conninfo("mqbroker-reads", self.home.url),
                    connection_class=PatientAsyncConnection,
                    min_size=1,
                    max_size=settings.DATABASE_CONNECTIONS,
                    open=False,
                    configure=self._prepare,
                    kwargs={"autocommit": True, "row_factory": namedtuple_row},
                    timeout=POOL_WAIT_SECONDS,
                    reconnect_timeout=RECONNECT_SECONDS,
                )
                await self._pool.open()
        return self._pool

    async def _prepare(self, connection: Connection) -> None:
        await _prepare(connection, self.home)

    async def close(self) -> None:
        """Closes the pool for good."""
        async with self._opening:
            self._is_closed = True
            if self._pool is not None:
                await self._pool.close()
                self._pool = None


async def read(statement: Statement[RowType], parameters: Mapping[str, Any] | None = None) -> Sequence[RowType]:
    """The rows of one statement, in the cell of this task. Raises SystemBusy as `_read` does."""
    return await _read(runtime.part(Reads), statement, parameters)


async def read_control(statement: Statement[RowType], parameters: Mapping[str, Any] | None = None) -> Sequence[RowType]:
    """The rows of one statement about the configuration, read from the control. Raises SystemBusy as `read` does."""
    return await _read(runtime.control(Reads), statement, parameters)


async def read_everywhere(
    statement: Statement[RowType], parameters: Mapping[str, Any] | None = None
) -> Sequence[RowType]:
    """The rows of one statement from all cells, which are asked at once. Raises SystemBusy as `read` does."""
    found = await runtime.placement.everywhere(partial(read, statement, parameters))
    return [row for rows in found for row in rows]


async def _read(reads: Reads, statement: Statement[RowType], parameters: Mapping[str, Any] | None) -> Sequence[RowType]:
    """The rows of one statement.

    Raises SystemBusy when the database is away, does not answer in time (`patience`) or is read-only for a write, and
    when no connection or a lock gets free within 3 s.
    """
    try:
        return await _read_once(reads, statement, parameters)
    except (PoolTimeout, ReadOnlySqlTransaction, Unanswered, LockNotAvailable, QueryCanceled) as problem:
        if isinstance(problem, PoolTimeout):
            patience.current().unanswered(POOL_WAIT_SECONDS)
        # The connection works: a second attempt would wait just as long.
        raise away(problem, reads.home) from problem
    except psycopg.OperationalError:
        # After a restart of the database all idle connections are dead: replace them, and try once more.
        await (await reads.pool()).check()
    try:
        return await _read_once(reads, statement, parameters)
    except (psycopg.OperationalError, ReadOnlySqlTransaction) as problem:
        # The server that answers now may be the earlier server's standby.
        raise away(problem, reads.home) from problem


async def _read_once(
    reads: Reads, statement: Statement[RowType], parameters: Mapping[str, Any] | None
) -> Sequence[RowType]:
    pool = await reads.pool()
    async with pool.connection(min(patience.current().left_seconds, POOL_WAIT_SECONDS)) as connection:
        return await execute(connection, statement, parameters)


@contextlib.asynccontextmanager
async def transaction() -> AsyncIterator[Connection]:
    """A short transaction of several statements, on a connection of the pool.

    Raises SystemBusy when the database is away or read-only, or no connection gets free within 3 s.
    """
    try:
        async with (await runtime.part(Reads).pool()).connection() as connection, connection.transaction():
            yield connection
    except (PoolTimeout, psycopg.OperationalError, ReadOnlySqlTransaction) as problem:
        raise away(problem) from problem


async def execute(
    connection: Connection, statement: Statement[RowType], parameters: Mapping[str, Any] | None = None
) -> Sequence[RowType]:
    """The rows of one statement on this connection; empty for a statement that returns no rows."""
    large = next((column for column in LARGE if column in statement.columns), None)
    # The binary format, because a body in text format is hex: twice as long, and decoded in the event loop.
    cursor = connection.cursor(row_factory=statement.rows, binary=large is not None)
    await cursor.execute(statement.text.encode(), parameters)
    if cursor.description is None:
        return ()
    return await cursor.fetchall() if large is None else await _in_steps(cursor, attrgetter(large))


async def _in_steps(cursor: psycopg.AsyncCursor[RowType], large_of: Callable[[RowType], bytes]) -> Sequence[RowType]:
    """All rows of a result that has arrived. Large rows are copied in steps: copying 16 MiB at once takes 10 ms."""
    rows = await cursor.fetchmany(1)
    while (left := cursor.rowcount - len(rows)) > 0:
        count = pacing.STEP_BYTES // max(len(large_of(rows[-1]) or b""), 1)
        if count >= left:
            rows += await cursor.fetchall()
        else:
            async with pacing.step():
                rows += await cursor.fetchmany(max(count, 1))
    return rows


def is_read_only(problem: BaseException | None) -> bool:
    """Whether a write failed because the database is read-only, such as a replica. Django wraps that error."""
    return isinstance(problem, ReadOnlySqlTransaction) or isinstance(
        getattr(problem, "__cause__", None), ReadOnlySqlTransaction
    )


def away(problem: Exception, cell: Runtime | None = None) -> SystemBusy:
    """The refusal for a database that does not answer or takes no writes. With several cells it is a CellAway.

    `cell` is by default the cell that the task works for.
    """
    if is_read_only(problem):
        return SystemBusy((cell or runtime.chosen() or runtime.current()).fence or READ_ONLY)
    if disk.is_full(problem):
        disk.note()
        return SystemBusy("The database's disk is full: nothing was stored. Free some space on its server.")
    if isinstance(problem, LockNotAvailable):
        return locked()
    if (refusal := runtime.placement.away(cell or runtime.chosen(), type(problem).__name__)) is not None:
        return refusal
    if isinstance(problem, Unanswered):
        return SystemBusy(f"The database does not answer ({problem}): nothing was stored, try again in a second.")
    return SystemBusy(f"The database is away ({type(problem).__name__}): nothing was stored, try again in a second.")


def locked(holders: str = "") -> SystemBusy:
    """The refusal for a lock that another session holds for too long. `holders`: the sessions, if known."""
    named = f" ({holders})" if holders else ""
    return SystemBusy(
        f"Another session{named} holds a lock in the database: nothing was stored, try again in a second."
    )
