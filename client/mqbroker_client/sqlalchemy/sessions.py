"""The barrier's way to an engine's database, also where its driver is asynchronous."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.orm import Session as OrmSession
from sqlalchemy.pool import Pool, PoolProxiedConnection
from sqlalchemy.util import await_only, greenlet_spawn

from mqbroker_client.barrier.dialects import Dialect, dialect_of
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
    """One that is closed with the pool that it came from."""

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
        # Not from the engine's pool: a program whose requests hold all of its connections must still be answered for.
        pool = self.engine.pool.recreate()
        proxied = pool.connect()
        connection = Connection(self.engine, proxied).execution_options(isolation_level="AUTOCOMMIT")
        return OwnConnectionSession(connection, pool, proxied)

    def of(self, connection: Connection | OrmSession) -> Session:
        """The connection to the engine's database, or that of a session, in its transaction."""
        if isinstance(connection, OrmSession):
            with_engine = {} if connection.bind else {"bind": self.engine}
            connection = connection.connection(bind_arguments=with_engine)
        return ConnectionSession(connection)

    def run(self, work: Callable[[], Found]) -> Found:
        """In this thread; an asynchronous driver gets an event loop for it, so the caller must not be in one."""
        return asyncio.run(greenlet_spawn(work)) if self.engine.dialect.is_async else work()


def in_a_thread(run: Callable[[], Found]) -> Found:
    """Within the greenlet of an AsyncSession: its event loop goes on."""
    return await_only(asyncio.to_thread(run))
