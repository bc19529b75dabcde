"""Sessions of the producer's database: the program's session within its transaction, and the barrier's own in
autocommit mode.
"""

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

from mqbroker_client.barrier.dialects import LOCK_WAIT_SECONDS, Dialect, dialect_of
from mqbroker_client.barrier.transactions import require_transaction

Parameters = Mapping[str, object]
Row = Sequence[Any]
#: A connection by PEP 249. The connection types of drivers have no common base.
Connection = Any
Found = TypeVar("Found")

NAME = re.compile(r":([a-z]\w*)")
# Drivers by the package of their connections.
DRIVERS = {
    "psycopg": "postgresql",
    "psycopg2": "postgresql",
    "pymysql": "mysql",
    "MySQLdb": "mysql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "sqlite3": "sqlite",
}


class Session(Protocol):
    """A database session that executes one statement at a time. Parameters are named, as in `:transaction_id`."""

    @property
    def dialect(self) -> Dialect: ...

    def query(self, statement: str, parameters: Parameters) -> Sequence[Row]:
        """The rows that a statement finds."""

    def write(self, statement: str, parameters: Parameters) -> int:
        """The number of rows that a statement wrote."""

    def close(self) -> None: ...


class Sessions(Protocol):
    """Opens sessions of the producer's database."""

    def open(self) -> Session:
        """A new session that no transaction of the program uses; each statement commits by itself."""

    def of(self, connection: Connection) -> Session:
        """The program's session, within its transaction. Raises OutsideTransaction when no transaction is open."""

    def run(self, work: Callable[[], Found]) -> Found:
        """Runs work that uses the barrier's own sessions, in the way that the driver needs."""


@dataclass(frozen=True, slots=True)
class CursorSession:
    """A connection of a driver, or of Django, with the name of its kind of database."""

    connection: Connection
    dialect: Dialect
    #: Whether parameters are written `%(name)s`; otherwise `:name`.
    percent: bool

    def query(self, statement: str, parameters: Parameters) -> Sequence[Row]:
        cursor = self._execute(statement, parameters)
        try:
            rows: Sequence[Row] = cursor.fetchall()
        finally:
            cursor.close()
        return rows

    def write(self, statement: str, parameters: Parameters) -> int:
        cursor = self._execute(statement, parameters)
        try:
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def close(self) -> None:
        self.connection.close()

    def _execute(self, statement: str, parameters: Parameters) -> Any:
        if self.percent and parameters:
            statement = NAME.sub(r"%(\1)s", statement.replace("%", "%%"))
        cursor = self.connection.cursor()
        try:
            cursor.execute(statement, dict(parameters)) if parameters else cursor.execute(statement)
        except BaseException:
            cursor.close()
            raise
        return cursor


@dataclass(frozen=True, slots=True)
class DriverSessions:
    """Sessions over connections of the drivers in DRIVERS."""

    connect: Callable[[], Connection]

    def open(self) -> Session:
        connection = self.connect()
        _let_autocommit(connection)
        return self.over(connection)

    def of(self, connection: Connection) -> Session:
        session = self.over(connection)
        require_transaction(connection)
        return session

    def over(self, connection: Connection) -> Session:
        """A session over the connection, whether a transaction is open or not."""
        driver = type(connection).__module__.partition(".")[0]
        if isinstance(connection, sqlite3.Connection):
            driver = "sqlite3"
        if driver not in DRIVERS:
            raise ValueError(
                f"the barrier does not know connections of {driver}: give one of {', '.join(DRIVERS)}, "
                "or use mqbroker_client.contrib.django or mqbroker_client.contrib.sqlalchemy"
            )
        dialect = dialect_of(DRIVERS[driver])
        return CursorSession(connection, dialect, percent=dialect.name != "sqlite")

    def run(self, work: Callable[[], Found]) -> Found:
        return work()


@dataclass(frozen=True, slots=True)
class OwnSession:
    """A session of the barrier itself: each statement is a transaction, and waits only a limited time for a lock."""

    session: Session
    dialect: Dialect

    @classmethod
    def prepared(cls, session: Session) -> Self:
        for statement in session.dialect.prepare:
            session.write(statement, {})
        return cls(session, session.dialect.waiting(LOCK_WAIT_SECONDS))

    def waiting(self, seconds: float) -> Self:
        """The same session with statements that wait at most `seconds` for a lock; 0: do not wait."""
        return replace(self, dialect=self.session.dialect.waiting(seconds))

    def query(self, statement: str, parameters: Parameters) -> Sequence[Row]:
        return self._bounded(self.session.query, statement, parameters)

    def write(self, statement: str, parameters: Parameters) -> int:
        return self._bounded(self.session.write, statement, parameters)

    def _bounded(self, run: Callable[[str, Parameters], Found], statement: str, parameters: Parameters) -> Found:
        try:
            for first in self.dialect.begin:
                self.session.write(first, {})
            found = run(statement, parameters)
            for last in self.dialect.commit:
                self.session.write(last, {})
        except Exception:
            with suppress(Exception):  # the connection may be lost: the caller raises the error that broke it
                for last in self.dialect.rollback:
                    self.session.write(last, {})
            raise
        return found


def _let_autocommit(connection: Connection) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.isolation_level = None
    elif callable(connection.autocommit):  # PyMySQL and mysqlclient
        connection.autocommit(True)
    else:
        connection.autocommit = True
