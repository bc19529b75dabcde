"""Runs a statement on Django's connection, for whoever is not in the event loop: the control plane and its reads."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection
from psycopg.rows import namedtuple_row

from store.db.connections import Row
from store.db.statements import Statement


def read(statement: Statement, parameters: Mapping[str, Any] | None = None) -> Sequence[Row]:
    """The rows of one statement that only reads; inside the caller's transaction, if it has one.

    Raises Django's OperationalError when the database is away.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.cursor(row_factory=namedtuple_row) as cursor:
        cursor.execute(statement.sql(), parameters or {})
        rows: Sequence[Row] = cursor.fetchall()
    return rows
