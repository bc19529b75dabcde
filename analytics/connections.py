"""The export's own connections to the broker's database, and its reads by SQL."""

import os
import sys
from collections.abc import Mapping, Sequence

import psutil
import psycopg
from psycopg.rows import TupleRow

from analytics.rows import Backend
from store.db.statements import RowType, Statement

FIND_BACKEND = Statement(__file__, "find_backend", Backend)
FIND_DATABASE = Statement(__file__, "find_database", one=str)
Connection = psycopg.Connection[TupleRow]


def connect(conninfo: str) -> Connection:
    """Opens a connection that writes parameters into the SQL text, so that the server can skip other partitions."""
    return psycopg.connect(conninfo, cursor_factory=psycopg.ClientCursor)


def read(
    connection: Connection, statement: Statement[RowType], parameters: Mapping[str, object] | None = None
) -> Sequence[RowType]:
    """The rows of one statement."""
    with connection.cursor(row_factory=statement.rows) as cursor:
        return cursor.execute(statement.sql(), parameters).fetchall()


def database(connection: Connection) -> str:
    """The identity of a database: an increment only continues an export of the same database."""
    [name] = read(connection, FIND_DATABASE)
    return name


def bind(connection: Connection) -> None:
    """Binds the server's process of this session to this process's processors, if both run on this machine."""
    [backend] = read(connection, FIND_BACKEND)
    bind_backend(backend)


def bind_backend(backend: Backend) -> None:
    """Like `bind`, for a session that any driver has opened in this process.

    The server's process may then use only the processors that both processes were allowed to use. A server process that
    a pooler shares among clients is not changed, because its client is the pooler.
    """
    if sys.platform != "linux" or not _is_ours(backend):
        return
    try:
        both = os.sched_getaffinity(backend.pid) & os.sched_getaffinity(0)
        if both:
            os.sched_setaffinity(backend.pid, both)
    except OSError:
        # The server's process belongs to another user: only root may change it.
        return


def _is_ours(backend: Backend) -> bool:
    """Whether the backend's process runs on this machine: its title contains our connection's port."""
    try:
        if backend.port not in {one.laddr.port for one in psutil.Process().net_connections("tcp") if one.laddr}:
            return False
        return f"({backend.port})" in " ".join(psutil.Process(backend.pid).cmdline())
    except psutil.Error:
        return False
