"""Opens database sessions for the barrier from a SQLAlchemy engine, also from an engine with an asynchronous driver."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.orm import Session as OrmSession
from sqlalchemy.pool import Pool, PoolProxiedConnection
from sqlalchemy.util import await_only, greenlet_spawn

from mqbroker_client.barrier import transactions as guard
from mqbroker_client.barrier.dialects import Dialect, dialect_of
from mqbroker_client.barrier.errors import BarrierError
from mqbroker_client.barrier.sessions import Parameters, Row, Session

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class ConnectionSession:
    """A connection of SQLAlchemy."""

    connection: Connection

    @property
    def dialect(self) -> Dialect:
        return dialect_of(self.connection.dialect.name)

    def query(self, statement: str, parameters: Parameters) -> Sequence[Row]:
        return [tuple(row) for row in self.connection.execute(text(statement), dict(parameters))]

    def write(self, statement: str, parameters: Parameters) -> int:
        return self.connection.execute(text(statement), dict(parameters)).rowcount

    def close(self) -> None:
        self.connection.close()


@dataclass(frozen=True, slots=True)
class OwnConnectionSession(ConnectionSession):
    """A connection with its own pool, which is closed together with the connection."""

    pool: Pool
    proxied: PoolProxiedConnection

    def close(self) -> None:
        try:
            self.connection.close()
            self.proxied.close()
        finally:
            self.pool.dispose()


@dataclass(frozen=True, slots=True)
class EngineSessions:
    engine: Engine

    def open(self) -> Session:
        # The connection does not come from the engine's pool, because checks must be answered even while requests hold
        # all its connections.
        pool = self.engine.pool.recreate()
        proxied = pool.connect()
        connection = Connection(self.engine, proxied).execution_options(isolation_level="AUTOCOMMIT")
        return OwnConnectionSession(connection, pool, proxied)

    def of(self, connection: Connection | OrmSession) -> Session:
        """A session for a connection to the engine's database, or for an ORM session, within its transaction."""
        own = connection_of(connection, self.engine)
        require_transaction(own)
        return ConnectionSession(own)

    def run(self, work: Callable[[], Found]) -> Found:
        """Runs the work in this thread.

        An asynchronous driver gets an event loop for it, so the caller must not be in one.
        """
        return asyncio.run(greenlet_spawn(work)) if self.engine.dialect.is_async else work()


def require_same_database(session: OrmSession, engine: Engine) -> None:
    """Raises BarrierError if the session's row would not be in the database from which checks are answered.

    Hosts and users may differ, because either connection may use a pooler.
    """
    if session.bind is not None and _database(session.bind.engine) != _database(engine):
        raise BarrierError(
            f"the session is bound to {_name(session.bind.engine)} and the outbox to {_name(engine)}: give the outbox "
            "the engine of the session, or a session of several databases `binds` in place of `bind`"
        )


def require_transaction(connection: Connection) -> None:
    """Raises OutsideTransaction in autocommit mode, in which nothing can be rolled back."""
    proxied = connection.connection
    guard.require_transaction(
        proxied.dbapi_connection,
        proxied.driver_connection,
        way_out="give the session an engine with another isolation_level than AUTOCOMMIT",
    )


def connection_of(connection: Connection | OrmSession, engine: Engine) -> Connection:
    if isinstance(connection, Connection):
        return connection
    return connection.connection(bind_arguments={} if connection.bind else {"bind": engine})


def _database(engine: Engine) -> tuple[str, str | None]:
    name, database = engine.url.get_backend_name(), engine.url.database
    return name, os.path.realpath(database) if name == "sqlite" and database else database


def _name(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=True)


def in_a_thread(run: Callable[[], Found]) -> Found:
    """Runs the function in a thread. Called in the greenlet of an AsyncSession, so its event loop continues."""
    return await_only(asyncio.to_thread(run))
