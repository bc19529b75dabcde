"""Reads for synchronous code: on Django's connection, or by a coroutine of the message path."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import async_to_sync
from django.db import connection, connections

from store.db import databases
from store.db.statements import NoRow, RowType, Statement

Given = ParamSpec("Given")
Result = TypeVar("Result")


def read(statement: Statement[RowType], parameters: Mapping[str, Any] | None = None) -> Sequence[RowType]:
    """The rows of one statement that only reads, from the cell that the work has entered, or from the control if it has
    entered no cell.

    Runs inside the caller's transaction, if it has one. Raises Django's OperationalError when the database is away.
    """
    return read_of(databases.here(), statement, parameters)


def read_of(
    alias: str, statement: Statement[RowType], parameters: Mapping[str, Any] | None = None
) -> Sequence[RowType]:
    """Reads like `read`, on the Django connection with this alias."""
    asked = connections[alias]
    asked.ensure_connection()
    with asked.wrap_database_errors, asked.connection.cursor(row_factory=statement.rows) as cursor:
        cursor.execute(statement.sql(), parameters or {})
        rows: Sequence[RowType] = cursor.fetchall()
    return rows


def write(statement: Statement[NoRow], parameters: Mapping[str, Any]) -> None:
    """Executes one statement that returns no rows. Connection and errors are the same as for `read`."""
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.cursor() as cursor:
        cursor.execute(statement.sql(), parameters)


def give_connection_back() -> None:
    """Returns this thread's connection to the pool, unless a transaction is open on it.

    Otherwise a thread would keep its connection until its request is answered. The pool has 4 connections, so a request
    that works for long without a statement would keep others waiting.
    """
    if not connection.in_atomic_block:
        connection.close()


def call(function: Callable[Given, Awaitable[Result]], *given: Given.args, **named: Given.kwargs) -> Result:
    """The result of a coroutine function, for a view that Django runs in a thread.

    The coroutine runs in the event loop of the web process, with the connections of the message path. In other
    processes use `event_loop.run`.
    """
    return async_to_sync(function)(*given, **named)
