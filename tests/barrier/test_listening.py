"""An outbox listens to a maker once, however often and by whichever of its classes it is asked to."""

import asyncio

import pytest
import sqlalchemy as sa
from mqbroker_client import Consumer, Producer
from mqbroker_client.contrib.sqlalchemy import Outbox
from mqbroker_client.contrib.testing import MemoryBroker
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker

from tests.barrier.local import engine_url
from tests.barrier.places import Place
from tests.broker.characters import bodies, name

pytest_plugins = ["mqbroker_client.contrib.testing.fixtures"]
pytestmark = pytest.mark.parametrize("place", ["read committed", "mariadb", "sqlite"], indirect=True)


def rows(place: Place) -> int:
    [(count,)] = place.run("SELECT count(*) FROM mqbroker_barrier")
    return int(count)


def test_a_maker_that_is_listened_to_twice_sends_each_message_once(place: Place, mqbroker: MemoryBroker) -> None:
    """Also where one maker's class is below that of another."""
    engine, before = sa.create_engine(engine_url(place.url)), rows(place)
    outbox, sessions = Outbox(Producer(mqbroker, place.group), engine), sessionmaker(engine)
    derived = sessionmaker(engine, class_=sessions.class_)
    for maker in (derived, sessions, derived, sessions):
        outbox.listen(maker)
    for maker in (derived, sessions):
        with maker.begin() as session:
            session.execute(sa.text(f"INSERT INTO orders (order_id) VALUES ('{name('order')}')"))
            outbox.send(session, "orders", "tea")
    engine.dispose()

    assert bodies(Consumer(mqbroker, "coupons").receive("orders")) == [b"tea", b"tea"]
    assert rows(place) == before + 2


def test_an_async_maker_that_is_listened_to_twice_sends_each_message_once(place: Place, mqbroker: MemoryBroker) -> None:
    if place.kind == "mysql":
        pytest.skip("no asynchronous driver of MariaDB is among the tests' packages")
    before = rows(place)

    async def run() -> None:
        engine = create_async_engine(engine_url(place.url, "aiosqlite"))
        outbox, sessions = Outbox(Producer(mqbroker, place.group), engine), async_sessionmaker(engine)
        outbox.listen(sessions)
        kind = sessions.kw["sync_session_class"]
        outbox.listen(sessions)
        outbox.listen(async_sessionmaker(sync_session_class=kind))
        assert sessions.kw["sync_session_class"] is kind
        async with sessions.begin() as session:
            await session.execute(sa.text(f"INSERT INTO orders (order_id) VALUES ('{name('order')}')"))
            outbox.send(session, "orders", "tea")
        await engine.dispose()

    asyncio.run(run())

    assert bodies(Consumer(mqbroker, "coupons").receive("orders")) == [b"tea"]
    assert rows(place) == before + 1
