"""Databases of a producer: where its orders and its barrier lie, as a test and as its programs reach them."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql
from mqbroker_client import HalfMessage
from mqbroker_client.barrier import Barrier
from mqbroker_client.core.ids import uuid7

from tests.barrier import mariadb
from tests.broker import databases
from tests.broker.characters import name

ORDERS = (
    "CREATE TABLE customers (customer_id varchar(36) PRIMARY KEY)",
    # Deferred where that is known: an order without a customer is refused by the COMMIT itself.
    "CREATE TABLE orders (order_id varchar(36) PRIMARY KEY, customer_id varchar(36) "
    "REFERENCES customers (customer_id){deferred})",
)
DEFERRED = " DEFERRABLE INITIALLY DEFERRED"
# A server ends a session of the program at once, as an operator does.
CUT_POSTGRESQL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid()"
)
CUT_MARIADB = "SELECT id FROM information_schema.processlist WHERE db = %s AND id <> connection_id()"


@dataclass(frozen=True)
class Place:
    """`url` and `isolation` are what a program is given; the isolation is that of its local transactions."""

    url: str
    isolation: str | None = None
    connect: Callable[[], Any] = field(kw_only=True)
    #: Of its own, so that no process answers for the database of another.
    group: str = field(default_factory=lambda: name("order-service"))
    topic: str = field(default_factory=lambda: name("orders"))
    #: Of the process that answers checks; a mutant in some tests.
    barrier_class: type[Barrier] = Barrier

    @property
    def kind(self) -> str:
        return urlsplit(self.url).scheme

    @property
    def barrier(self) -> Barrier:
        return self.barrier_class(self.connect, self.group)

    @property
    def defers(self) -> bool:
        """Whether a COMMIT may be refused for a constraint."""
        return self.kind != "mysql"

    def words(self) -> str:
        """For the command line of a program."""
        return json.dumps({"url": self.url, "isolation": self.isolation, "group": self.group, "topic": self.topic})

    def make(self) -> None:
        """Creates the tables of the orders."""
        self.run(*(statement.format(deferred=DEFERRED if self.defers else "") for statement in ORDERS))

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """The rows of the last statement, which commit."""
        with closing(self.connect()) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            found = list(cursor.fetchall()) if cursor.description else []
            connection.commit()
        return found

    def orders(self) -> set[str]:
        return {order_id for (order_id,) in self.run("SELECT order_id FROM orders")}

    def cut(self) -> None:
        """Ends all sessions of programs."""
        if self.kind == "postgresql":
            self.run(CUT_POSTGRESQL)
            return
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(CUT_MARIADB, (urlsplit(self.url).path[1:],))
            for (session,) in cursor.fetchall():
                cursor.execute(f"KILL {session}")


@contextmanager
def postgresql(isolation: str) -> Iterator[Place]:
    with databases.fresh() as url:
        place = of_database(url, isolation)
        place.make()
        yield place


def of_database(url: str, isolation: str) -> Place:
    """A database of PostgreSQL that was made already."""
    return Place(url, isolation, connect=lambda: psycopg.connect(url))


@contextmanager
def of_mariadb(server: mariadb.Server) -> Iterator[Place]:
    with server.database() as database:
        url = f"mysql://root@127.0.0.1:{server.port}/{database}"
        place = Place(url, connect=lambda: server.connect(database))
        place.make()
        yield place


def sqlite(folder: Path) -> Place:
    path = folder / "orders.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    place = of_file(folder)
    place.make()
    return place


def of_file(folder: Path) -> Place:
    """A SQLite database that was made already."""
    path = folder / "orders.sqlite3"
    return Place(f"sqlite://{path}", connect=lambda: sqlite3.connect(path))


def mysql_parts(url: str) -> dict[str, Any]:
    """What PyMySQL connects with: without TLS, whose certificates it would read for each connection, in 20 ms."""
    parts = urlsplit(url)
    where = {"host": parts.hostname, "port": parts.port, "ssl_disabled": True}
    return {**where, "user": parts.username, "database": parts.path[1:]}


def connect(url: str) -> Any:
    """A driver's connection, as a program makes it."""
    kind = urlsplit(url).scheme
    if kind == "postgresql":
        return psycopg.connect(url)
    if kind == "mysql":
        return pymysql.connect(**mysql_parts(url))
    connection = sqlite3.connect(urlsplit(url).path, timeout=20)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def half(transaction_id: Any = None) -> HalfMessage:
    """A half as a check asks about it."""
    return HalfMessage("orders", b"order", transaction_id=transaction_id or uuid7(), producer_group="order-service")
