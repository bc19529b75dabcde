"""Requires local transactions: a row is only written in an open transaction that can be rolled back.

In autocommit mode each statement commits by itself, so the row COMMIT would stay although other work failed.
"""

from typing import Any, NoReturn

from mqbroker_client.barrier.errors import OutsideTransaction

# SERVER_STATUS_IN_TRANS of MySQL's protocol.
_IN_TRANSACTION = 1
# PQTRANS_IDLE of libpq.
_IDLE = 0


def require_transaction(
    *connections: Any, way_out: str = "begin a transaction first, or connect without autocommit"
) -> None:
    """Raises OutsideTransaction for a connection in autocommit mode, unless it is within an explicit BEGIN.

    Several arguments are one connection: SQLAlchemy's connection, and the asynchronous driver's connection below it.
    """
    if any(map(_is_autocommit, connections)) and not any(map(_is_in_transaction, connections)):
        refuse_autocommit(way_out)


def refuse_autocommit(way_out: str) -> NoReturn:
    """Raises OutsideTransaction."""
    raise OutsideTransaction(
        "the connection is in autocommit mode and no transaction is open, so nothing is written that a failure could "
        f"not take back: {way_out}"
    )


def _is_autocommit(connection: Any) -> bool:
    """Whether a statement would commit by itself, by the attributes of each driver."""
    get_autocommit = getattr(connection, "get_autocommit", None)  # PyMySQL and mysqlclient
    if callable(get_autocommit):
        return bool(get_autocommit())
    mode = getattr(connection, "autocommit", None)
    if isinstance(mode, bool):
        return mode
    # Older sqlite3 versions lack the attribute `autocommit`; with LEGACY_TRANSACTION_CONTROL it is a number.
    return getattr(connection, "isolation_level", "") is None


def _is_in_transaction(connection: Any) -> bool:
    """Whether a transaction is open. False for mysqlclient, which does not show it."""
    is_open = getattr(connection, "in_transaction", None)  # sqlite3, and MySQL's connector
    if isinstance(is_open, bool):
        return is_open
    status = getattr(getattr(connection, "info", None), "transaction_status", None)  # psycopg and psycopg2
    if isinstance(status, int):
        return status != _IDLE
    if callable(check := getattr(connection, "is_in_transaction", None)):  # asyncpg
        return bool(check())
    flags = getattr(connection, "server_status", 0)  # PyMySQL, and MariaDB's connector
    return isinstance(flags, int) and bool(flags & _IN_TRANSACTION)
