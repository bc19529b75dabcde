"""Runs a statement on Django's connection, outside of the event loop: for the control plane, the console, metrics."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from store.db.statements import RowType, Statement


def read(statement: Statement[RowType], parameters: Mapping[str, Any] | None = None) -> Sequence[RowType]:
    """The rows of one statement that only reads; inside the caller's transaction, if it has one.

    Raises Django's OperationalError when the database is away.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.cursor(row_factory=statement.rows) as cursor:
        cursor.execute(statement.sql(), parameters or {})
        rows: Sequence[RowType] = cursor.fetchall()
    return rows
