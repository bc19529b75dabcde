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
    """A connection that puts values into statements itself: the server plans for one segment and prunes the others."""
    return psycopg.connect(conninfo, cursor_factory=psycopg.ClientCursor)


def read(
    connection: Connection, statement: Statement[RowType], parameters: Mapping[str, object] | None = None
) -> Sequence[RowType]:
    """The rows of one statement."""
    with connection.cursor(row_factory=statement.rows) as cursor:
        return cursor.execute(statement.sql(), parameters).fetchall()


def database(connection: Connection) -> str:
    """What names the database among all: an increment goes on from an export of the same one only."""
    [name] = read(connection, FIND_DATABASE)
    return name


def bind(connection: Connection) -> None:
    """Keeps the server's process of this session to the processors of this one, where both run here and it may be."""
    [backend] = read(connection, FIND_BACKEND)
    bind_backend(backend)


def bind_backend(backend: Backend) -> None:
    """The same for a session that any driver has opened in this process.

    The server's process has the processors that it had and this one has, too. One that a pooler shares among clients is
    left alone: its client is the pooler.
    """
    if sys.platform != "linux" or not _is_ours(backend):
        return
    try:
        both = os.sched_getaffinity(backend.pid) & os.sched_getaffinity(0)
        if both:
            os.sched_setaffinity(backend.pid, both)
    except OSError:
        # Another user's: only root may.
        return


def _is_ours(backend: Backend) -> bool:
    """Whether a process of this machine has this id and the title that the server gives it: its client's port."""
    try:
        if backend.port not in {one.laddr.port for one in psutil.Process().net_connections("tcp") if one.laddr}:
            return False
        return f"({backend.port})" in " ".join(psutil.Process(backend.pid).cmdline())
    except psutil.Error:
        return False
