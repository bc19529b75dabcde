"""Shops whose broker may be away and that keep, as programs with threads and with event loops have them."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from mqbroker_client import Broker, Producer
from mqbroker_client.contrib.sqlalchemy import Outbox
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker
from sqlalchemy.pool import NullPool

from tests.barrier.local import engine_url
from tests.barrier.never_taken import Sending
from tests.barrier.places import Place
from tests.broker.running import API_KEY

INSERT = sa.text("INSERT INTO orders VALUES (:order_id, NULL)")
AWAY = Broker("http://127.0.0.1:1", API_KEY)


@dataclass(frozen=True)
class Shop:
    """`buy` commits an order with its messages, or raises."""

    outbox: Outbox
    buy: Callable[[str, Sequence[Sending]], None]


@contextmanager
def threaded(place: Place, broker: Broker, threads: int = 4, **options: Any) -> Iterator[Shop]:
    engine = sa.create_engine(engine_url(place.url), pool_size=threads)
    outbox = Outbox(Producer(broker, place.group), engine, **{"on_unavailable": "keep", **options})
    sessions = sessionmaker(engine)
    outbox.listen(sessions)

    def buy(order_id: str, sendings: Sequence[Sending]) -> None:
        with sessions.begin() as session:
            session.execute(INSERT, {"order_id": order_id})
            for topic, body, fields in sendings:
                outbox.send(session, topic, body, **fields)

    yield Shop(outbox, buy)
    engine.dispose()


@contextmanager
def tasked(place: Place, broker: Broker) -> Iterator[Shop]:
    # Each order has an event loop of its own, which no connection outlives.
    engine = create_async_engine(engine_url(place.url, "aiosqlite"), poolclass=NullPool)
    outbox = Outbox(Producer(broker, place.group), engine, on_unavailable="keep")
    sessions = async_sessionmaker(engine)
    outbox.listen(sessions)

    async def buy(order_id: str, sendings: Sequence[Sending]) -> None:
        async with sessions.begin() as session:
            await session.execute(INSERT, {"order_id": order_id})
            for topic, body, fields in sendings:
                outbox.send(session, topic, body, **fields)

    yield Shop(outbox, lambda order_id, sendings: asyncio.run(buy(order_id, sendings)))


BINDINGS: dict[str, Callable[..., Any]] = {"threads": threaded, "tasks": tasked}
# For MariaDB there is no asynchronous driver here.
PAIRS = [
    (binding, place)
    for place in ("read committed", "mariadb", "sqlite")
    for binding in BINDINGS
    if (binding, place) != ("tasks", "mariadb")
]


def kept(place: Place) -> list[tuple[Any, ...]]:
    """The reason of each row with messages."""
    return place.run("SELECT refused FROM mqbroker_barrier WHERE messages IS NOT NULL ORDER BY transaction_id")
