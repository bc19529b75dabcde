"""The address: what DATABASE_URL says reaches JDBC unchanged, or is refused in a sentence."""

import selectors
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest

from analytics.errors import SocketRefused
from analytics.readers import address
from store.db.server_url import database
from tests.analytics.conftest import PASSWORD


def test_a_password_of_special_characters_reaches_jdbc_as_it_is(reader: str) -> None:
    with psycopg.connect(address.conninfo(database(reader))) as connection:
        found = address.of(connection)

    parts = urlsplit(reader)
    assert found.url == f"jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}"
    assert found.properties["user"] == parts.username
    assert found.properties["password"] == PASSWORD
    assert PASSWORD not in repr(found)


def test_what_the_url_says_of_tls_reaches_jdbc(reader: str) -> None:
    with psycopg.connect(address.conninfo(database(f"{reader}?sslmode=allow"))) as connection:
        assert address.of(connection).properties["sslmode"] == "allow"


def test_a_name_in_the_query_of_the_url_is_understood() -> None:
    conninfo = address.conninfo(database("postgresql:///mq?host=db.example&port=6432&user=reader"))

    expected = {"dbname": "mq", "host": "db.example", "port": "6432", "user": "reader"}
    assert psycopg.conninfo.conninfo_to_dict(conninfo).items() >= expected.items()


def test_what_only_django_understands_is_left_out() -> None:
    settings = {**database("postgresql://reader@db.example/mq"), "OPTIONS": {"pool": {"max_size": 4}}}

    conninfo = psycopg.conninfo.conninfo_to_dict(address.conninfo(settings))

    assert conninfo.keys() == {"dbname", "user", "host", "application_name", "options"}


def test_a_unix_socket_is_refused_with_the_way_out(reader: str, tmp_path: Path) -> None:
    parts = urlsplit(reader)
    url = f"postgresql:///{parts.path[1:]}?host={quote(str(tmp_path))}&port={parts.port}&user={parts.username}"

    with (
        socket_of((str(parts.hostname), int(parts.port or 5432)), tmp_path),
        psycopg.connect(address.conninfo(database(url)), password=PASSWORD) as connection,
        pytest.raises(SocketRefused) as refused,
    ):
        address.of(connection)

    assert refused.value.code == "socket_refused"
    assert str(refused.value) == (
        f"DATABASE_URL reaches PostgreSQL by the Unix socket {tmp_path}, and Spark's driver speaks TCP only: give "
        f"postgresql://user:password@127.0.0.1:{parts.port}{parts.path}."
    )


@contextmanager
def socket_of(server: tuple[str, int], folder: Path) -> Iterator[None]:
    """A Unix socket of a server that has none: one connection at a time is handed on to it."""

    class HandOn(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(server) as onward, selectors.DefaultSelector() as either:
                either.register(self.request, selectors.EVENT_READ, onward)
                either.register(onward, selectors.EVENT_READ, self.request)
                while all(hand_on(key.fileobj, key.data) for key, _ in either.select()):
                    pass

    with socketserver.UnixStreamServer(str(folder / f".s.PGSQL.{server[1]}"), HandOn) as listener:
        thread = threading.Thread(target=listener.handle_request)
        thread.start()
        try:
            yield
        finally:
            thread.join()


def hand_on(source: Any, target: socket.socket) -> bool:
    """Passes on what has come; whether the source is still open."""
    received = source.recv(65536)
    target.sendall(received)
    return bool(received)
