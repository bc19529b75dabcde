"""The export's own connections to the broker's database, and its reads by SQL."""

from collections.abc import Mapping, Sequence

import psycopg
from psycopg.rows import TupleRow

from analytics.rows import DatabaseName
from store.db.statements import RowType, Statement

FIND_DATABASE = Statement(__file__, "find_database", DatabaseName)
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
    [found] = read(connection, FIND_DATABASE)
    return found.name
