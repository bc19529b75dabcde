"""A service's own SQLite database: durable before it answers, and shared by its processes."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Far above the milliseconds that another process of the service holds the write lock.
BUSY_TIMEOUT_SECONDS = 10.0


def connect(path: Path, schema: str) -> sqlite3.Connection:
    """Transactions are begun and ended by `transaction` alone. Each process connects for itself."""
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.executescript(schema)
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    # IMMEDIATE: the write lock comes first, so what is read inside stays true until the commit.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
