"""Autocommit mode: a row that says COMMIT would stay beside work that failed, so nothing writes one there."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pymysql
import pytest
import sqlalchemy as sa
from mqbroker_client import Broker, Delivery, Producer
from mqbroker_client.barrier.errors import OutsideTransaction
from mqbroker_client.barrier.inbox import Inbox
from mqbroker_client.contrib.sqlalchemy import EngineBarrier, Outbox, exactly_once, exactly_once_async
from mqbroker_client.core.ids import uuid7
from mqbroker_client.core.messages import StoredMessage
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker

from tests.barrier.local import engine_url
from tests.barrier.places import Place, mysql_parts
from tests.broker.characters import name

pytestmark = pytest.mark.parametrize("place", ["read committed", "mariadb", "sqlite"], indirect=True)

AWAY = Broker("http://127.0.0.1:1", "mq_key")
REFUSAL = "the connection is in autocommit mode and no transaction is open"


class Failure(Exception):
    """Of the work, behind its effect."""


def autocommitting(place: Place) -> Any:
    """A driver's connection, as a program gets it that asks for autocommit."""
    if place.kind == "postgresql":
        return psycopg.connect(place.url, autocommit=True)
    if place.kind == "mysql":
        return pymysql.connect(**mysql_parts(place.url), autocommit=True)
    return sqlite3.connect(place.url.removeprefix("sqlite://"), isolation_level=None)


def rows(place: Place, transaction_id: UUID) -> int:
    [(count,)] = place.run(f"SELECT count(*) FROM mqbroker_barrier WHERE transaction_id = '{transaction_id}'")
    return int(count)


def received() -> Delivery:
    """A delivery as a consumer gets it."""
    message = StoredMessage(topic="orders", body=b"1", stored_at=datetime.now(UTC), commit_log_offset=0)
    return Delivery(message, 0, 0, "receipt", 1)


@pytest.fixture
def engine(place: Place) -> Iterator[sa.Engine]:
    made = sa.create_engine(engine_url(place.url), isolation_level="AUTOCOMMIT")
    yield made
    made.dispose()


def test_a_row_is_not_written_where_it_would_commit_by_itself(place: Place) -> None:
    transaction_id = uuid7()
    with closing(autocommitting(place)) as connection, pytest.raises(OutsideTransaction, match=REFUSAL):
        place.barrier.insert_commit(connection, transaction_id)

    assert rows(place, transaction_id) == 0


def test_a_row_is_written_within_an_explicit_transaction_and_goes_with_it(place: Place) -> None:
    for ends, count in (("ROLLBACK", 0), ("COMMIT", 1)):
        transaction_id = uuid7()
        with closing(autocommitting(place)) as connection:
            cursor = connection.cursor()
            cursor.execute("BEGIN")
            place.barrier.insert_commit(connection, transaction_id)
            cursor.execute(ends)

        assert rows(place, transaction_id) == count


def test_an_engine_in_autocommit_mode_writes_no_row(place: Place, engine: sa.Engine) -> None:
    barrier, transaction_id = EngineBarrier(engine, place.group), uuid7()
    with Session(engine) as session, pytest.raises(OutsideTransaction, match=REFUSAL):
        barrier.insert_commit(session, transaction_id)
    with engine.connect() as connection, pytest.raises(OutsideTransaction, match="another isolation_level"):
        barrier.insert_commit(connection, transaction_id)

    assert rows(place, transaction_id) == 0


def test_a_message_of_a_session_in_autocommit_mode_is_refused_at_its_commit(place: Place, engine: sa.Engine) -> None:
    """Neither its engine nor the session alone may commit by itself; the broker is not asked."""
    plain = sa.create_engine(engine_url(place.url))
    for bind, options in ((engine, {}), (plain, {"isolation_level": "AUTOCOMMIT"})):
        outbox, sessions = Outbox(Producer(AWAY, place.group), bind), sessionmaker(bind)
        outbox.listen(sessions)
        with sessions() as session:
            session.connection(execution_options=options)
            outbox.send(session, place.topic, "tea")
            with pytest.raises(OutsideTransaction, match=REFUSAL):
                session.commit()
    plain.dispose()


def test_a_handler_over_an_engine_in_autocommit_mode_is_refused_before_its_effect(
    place: Place, engine: sa.Engine
) -> None:
    """Else its row would say that a handler that raised has done its work, and the message is skipped."""
    group, order_id = name("payments"), name("paid")
    Inbox(group, place.connect).create_table()

    @exactly_once(group, sessionmaker(engine))
    def pay(delivery: Delivery, session: Session) -> None:
        session.execute(sa.text(f"INSERT INTO orders (order_id) VALUES ('{order_id}')"))
        raise Failure

    delivery = received()
    for _ in range(2):
        with pytest.raises(OutsideTransaction, match=REFUSAL):
            pay(delivery)

    assert order_id not in place.orders()
    assert place.run(f"SELECT count(*) FROM mqbroker_inbox WHERE consumer_group = '{group}'") == [(0,)]


def test_a_handler_in_a_transaction_that_another_ends_is_refused(place: Place) -> None:
    """It would be acked, and then rolled back."""
    Inbox("payments", place.connect).create_table()
    plain, order_id = sa.create_engine(engine_url(place.url)), name("paid")
    with plain.connect() as connection:
        connection.begin()

        @exactly_once("payments", sessionmaker(connection))
        def pay(delivery: Delivery, session: Session) -> None:
            session.execute(sa.text(f"INSERT INTO orders (order_id) VALUES ('{order_id}')"))

        with pytest.raises(OutsideTransaction, match="bind the sessions to an engine"):
            pay(received())
    plain.dispose()

    assert order_id not in place.orders()


def test_async_sessions_are_refused_alike(place: Place) -> None:
    if place.kind == "mysql":
        pytest.skip("no asynchronous driver of MariaDB is among the tests' packages")
    Inbox("payments", place.connect).create_table()
    transaction_id = uuid7()

    async def refused(engine: AsyncEngine) -> None:
        outbox, sessions = Outbox(Producer(AWAY, place.group), engine), async_sessionmaker(engine)
        outbox.listen(sessions)

        @exactly_once_async("payments", sessions)
        async def pay(delivery: Delivery, session: AsyncSession) -> None: ...

        async with sessions() as session:
            with pytest.raises(OutsideTransaction, match=REFUSAL):
                await EngineBarrier(engine, place.group).insert_commit_async(session, transaction_id)
            outbox.send(session, place.topic, "tea")
            with pytest.raises(OutsideTransaction, match=REFUSAL):
                await session.commit()
        with pytest.raises(OutsideTransaction, match=REFUSAL):
            await pay(received())

    async def run() -> None:
        engine = create_async_engine(engine_url(place.url, "aiosqlite"), isolation_level="AUTOCOMMIT")
        await refused(engine)
        await engine.dispose()

    asyncio.run(run())

    assert rows(place, transaction_id) == 0


def test_sqlite_that_begins_by_the_programs_own_events_is_not_refused(place: Place) -> None:
    """SQLAlchemy's page on SQLite advises it, for transactions that hold their reads, too."""
    if place.kind != "sqlite":
        pytest.skip("of SQLite alone")
    plain, transaction_id = sa.create_engine(engine_url(place.url)), uuid7()
    sa.event.listen(plain, "connect", lambda made, _: setattr(made, "isolation_level", None))
    sa.event.listen(plain, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    with suppress(Failure), plain.begin() as connection:
        EngineBarrier(plain, place.group).insert_commit(connection, transaction_id)
        raise Failure
    assert rows(place, transaction_id) == 0
    with plain.begin() as connection:
        EngineBarrier(plain, place.group).insert_commit(connection, transaction_id)
    plain.dispose()

    assert rows(place, transaction_id) == 1
