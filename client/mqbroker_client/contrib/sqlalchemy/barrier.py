"""The barrier in an engine's database, for transactions that begin with a half message."""

import asyncio
from uuid import UUID

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession

from mqbroker_client.barrier.decisions import Barrier
from mqbroker_client.contrib.sqlalchemy.sessions import EngineSessions, in_a_thread


class EngineBarrier(Barrier):
    """A `Barrier` in an engine's database, for `TransactionProducer`; with an asynchronous engine for
    `AsyncTransactionProducer`.

    `insert_commit` takes a `Session` or `Connection` of SQLAlchemy instead of a driver's connection.
    """

    def __init__(self, engine: Engine | AsyncEngine, producer_group: str) -> None:
        self.sessions = EngineSessions(engine.sync_engine if isinstance(engine, AsyncEngine) else engine)
        self.producer_group = producer_group

    async def create_table_async(self) -> None:
        """Creates the table as `create_table` does, when an event loop is running."""
        await asyncio.to_thread(self.create_table)

    async def insert_commit_async(self, session: AsyncSession | AsyncConnection, transaction_id: UUID) -> None:
        """Inserts COMMIT into the barrier's table, in the transaction of an asynchronous session or connection. Errors
        are the same as for `insert_commit`.
        """
        await session.run_sync(self.insert_commit, transaction_id, aside=in_a_thread)
