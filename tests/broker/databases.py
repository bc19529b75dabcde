"""Databases of a test's own, on the server that DATABASE_URL names."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from store.segments.log import APPENDERS_LOCK

SEND_AWAY = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = %s AND backend_type = 'client backend' AND pg_has_role(usesysid, 'USAGE')
"""
SESSIONS = """
SELECT coalesce(datname, '') || ' ' || application_name, count(*) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() GROUP BY 1 ORDER BY 2 DESC
"""
# File by file it takes half of the CPU of PostgreSQL's default, which writes every page to the WAL, compressed.
COPY = "CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY"


@contextmanager
def fresh() -> Iterator[str]:
    """The URL of an empty database that is dropped afterwards, with its connections."""
    server = os.environ.get("DATABASE_URL")
    if not server:
        pytest.fail("No DATABASE_URL: start the tests with ./mq test, which brings servers of its own.")
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            drop(connection, name)


@contextmanager
def copied(template: str) -> Iterator[str]:
    """The URL of a copy of a database without connections; dropped afterwards."""
    name, copy = urlsplit(template).path[1:], f"test_{secrets.token_hex(6)}"
    create = sql.SQL(COPY).format(sql.Identifier(copy), sql.Identifier(name))
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(create)
        try:
            yield urlsplit(template)._replace(path=f"/{copy}").geturl()
        finally:
            drop(connection, copy)


def sessions() -> dict[str, int]:
    """How many sessions the server of this process has, by the names of database and program."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        return dict(connection.execute(SESSIONS).fetchall())


def drop(connection: psycopg.Connection, name: str) -> None:
    """Drop a database and end its connections.

    Not `DROP DATABASE … WITH (FORCE)`: that is refused to all but a superuser while autovacuum is in the
    database, which a plain `DROP DATABASE` sends away by itself.
    """
    shut(connection, name)
    connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


def shut(connection: psycopg.Connection, name: str) -> None:
    """Refuse new sessions in a database and end those of this role.

    A superuser's session that was closed just before is there until its process ended, and may not be signalled.
    `DROP DATABASE` waits five seconds for it.
    """
    connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(name)))
    connection.execute(SEND_AWAY, (name,))


@contextmanager
def writers_halted(database_url: str) -> Iterator[None]:
    """Holds alone the lock that every writer of the log shares, as the roll of a segment does for a moment."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [APPENDERS_LOCK])
        yield
