"""The export's own connections to the broker's database, and its reads by SQL."""

from collections.abc import Mapping, Sequence

import psycopg
from psycopg.rows import TupleRow

from store.db.statements import RowType, Statement

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
