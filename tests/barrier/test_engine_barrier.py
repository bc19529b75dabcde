"""The barrier of an engine: its row is written by a session or a connection, sync and async, once and in time."""

import asyncio

import pytest
import sqlalchemy as sa
from mqbroker_client import HalfMessage
from mqbroker_client.barrier import AlreadyCommitted, TransactionAbandoned
from mqbroker_client.contrib.sqlalchemy import EngineBarrier
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tests.barrier import places
from tests.barrier.local import engine_url
from tests.barrier.places import Place


def test_an_async_local_transaction_has_its_table_and_is_refused_behind_a_check_and_a_second_time(place: Place) -> None:
    if place.kind == "mysql":
        pytest.skip("no asynchronous driver of MariaDB is among the tests' packages")
    behind_a_check, twice = places.half(), places.half()

    async def insert(engine: AsyncEngine, asked: HalfMessage) -> None:
        async with AsyncSession(engine) as session, session.begin():
            await session.execute(sa.text("SELECT count(*) FROM orders"))
            await EngineBarrier(engine, place.group).insert_commit_async(session, asked.transaction_id)

    async def run() -> None:
        isolation = {"isolation_level": place.isolation.upper()} if place.isolation else {}
        engine = create_async_engine(engine_url(place.url, "aiosqlite"), **isolation)
        place.run("DROP TABLE mqbroker_barrier")
        await EngineBarrier(engine, place.group).create_table_async()
        await insert(engine, twice)
        assert place.barrier.check(behind_a_check) == "ROLLBACK"
        with pytest.raises(TransactionAbandoned):
            await insert(engine, behind_a_check)
        with pytest.raises(AlreadyCommitted):
            await insert(engine, twice)
        await engine.dispose()

    asyncio.run(run())


def test_a_row_is_written_by_a_session_or_a_connection(place: Place) -> None:
    engine = sa.create_engine(engine_url(place.url))
    barrier, by_session, by_connection = EngineBarrier(engine, place.group), places.half(), places.half()
    with Session() as unbound:
        barrier.insert_commit(unbound, by_session.transaction_id)
        unbound.commit()
    with engine.begin() as connection:
        barrier.insert_commit(connection, by_connection.transaction_id)

    assert [outcome.state for outcome in barrier.answer([by_session, by_connection])] == ["COMMIT", "COMMIT"]
    engine.dispose()
