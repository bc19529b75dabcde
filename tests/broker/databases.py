"""Databases of a test's own, on the server that DATABASE_URL names."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql


@contextmanager
def fresh() -> Iterator[str]:
    """The URL of an empty database that is dropped afterwards, whoever is still connected."""
    server = os.environ.get("DATABASE_URL")
    if not server:
        pytest.fail("No DATABASE_URL: start the tests with ./mq test, which brings servers of its own.")
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
