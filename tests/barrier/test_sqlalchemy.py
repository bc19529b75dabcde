"""SQLAlchemy: messages go with the session's transaction, sync and async: what happens to it happens to them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from mqbroker_client import Broker, Consumer, Producer
from mqbroker_client.barrier.errors import BarrierError, OutsideTransaction
from mqbroker_client.contrib.sqlalchemy import Outbox
from mqbroker_client.core.errors import TopicIllegal, Unreachable
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import (
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker

from tests.barrier import places
from tests.barrier.places import Place
from tests.broker.characters import bodies, name
from tests.broker.running import RunningBroker
from tests.broker.tellings import received_until_empty


class Base(DeclarativeBase):
    """Of the shop's tables."""


class Order(Base):
    __tablename__ = "numbered"
    number: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str] = mapped_column(unique=True)


class Declined(Exception):
    """Rolls back."""


@dataclass(frozen=True)
class Shop:
    """A database, its sessions, and the outbox that listens to them."""

    place: Place
    outbox: Outbox
    sessions: "sessionmaker[Session]"

    def received(self, broker: RunningBroker) -> list[bytes]:
        return sorted(bodies(received_until_empty(Consumer(broker.client(), name("coupons")), self.place.topic)))

    def orders(self) -> list[str]:
        return [item for (item,) in self.place.run("SELECT item FROM numbered ORDER BY item")]

    def rows(self) -> int:
        [(count,)] = self.place.run("SELECT count(*) FROM mqbroker_barrier")
        return int(count)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = places.sqlite(tmp_path)
    made.barrier.create_table()
    engine = sa.create_engine(f"sqlite:///{made.url.removeprefix('sqlite://')}")
    Base.metadata.create_all(engine)
    engine.dispose()
    return made


def shop_at(place: Place, broker: Broker) -> Shop:
    engine = sa.create_engine(f"sqlite:///{place.url.removeprefix('sqlite://')}")
    outbox, sessions = Outbox(Producer(broker, place.group), engine), sessionmaker(engine)
    outbox.listen(sessions)
    return Shop(place, outbox, sessions)


@pytest.fixture
def shop(place: Place, broker: RunningBroker) -> Iterator[Shop]:
    shop = shop_at(place, broker.client())
    yield shop
    shop.outbox.engine.dispose()


def test_a_body_holds_the_key_that_the_database_made(shop: Shop, broker: RunningBroker) -> None:
    with shop.sessions.begin() as session:
        order = Order(item="tea")
        session.add(order)
        session.flush()
        shop.outbox.send(session, shop.place.topic, {"order": order.number})

    assert shop.received(broker) == [b'{"order":1}']


def test_a_message_before_the_first_statement_begins_the_transaction(shop: Shop, broker: RunningBroker) -> None:
    with shop.sessions() as session:
        shop.outbox.send(session, shop.place.topic, "sent")
        session.add(Order(item="tea"))
        session.commit()
        shop.outbox.send(session, shop.place.topic, "rolled back")
        session.rollback()
        shop.outbox.send(session, shop.place.topic, "alone")
        session.commit()
        shop.outbox.send(session, shop.place.topic, "never committed")

    assert shop.received(broker) == [b"alone", b"sent"]
    assert (shop.orders(), shop.rows()) == (["tea"], 2)


def test_a_session_of_a_scope_sends_with_its_transaction(shop: Shop, broker: RunningBroker) -> None:
    session = scoped_session(shop.sessions)
    with session.begin():
        shop.outbox.send(session, shop.place.topic, "tea")
    session.remove()

    assert shop.received(broker) == [b"tea"]


def test_a_savepoint_that_is_rolled_back_takes_its_messages_along(shop: Shop, broker: RunningBroker) -> None:
    with shop.sessions.begin() as session:
        session.add(Order(item="tea"))
        shop.outbox.send(session, shop.place.topic, "outer")
        with suppress(Declined), session.begin_nested():
            shop.outbox.send(session, shop.place.topic, "rolled back")
            with session.begin_nested():
                shop.outbox.send(session, shop.place.topic, "released in a savepoint that is rolled back")
            raise Declined
        with session.begin_nested():
            shop.outbox.send(session, shop.place.topic, "released")

    assert shop.received(broker) == [b"outer", b"released"]
    assert shop.rows() == 1


def test_a_transaction_that_is_rolled_back_or_closed_sends_nothing(shop: Shop, broker: RunningBroker) -> None:
    with shop.sessions() as session:
        session.add(Order(item="tea"))
        shop.outbox.send(session, shop.place.topic, "rolled back")
        session.rollback()
        session.add(Order(item="coffee"))
        session.commit()
        session.add(Order(item="milk"))
        shop.outbox.send(session, shop.place.topic, "closed")

    assert shop.received(broker) == []
    assert (shop.orders(), shop.rows()) == (["coffee"], 0)


def test_a_flush_that_fails_in_the_commit_comes_before_the_half(shop: Shop, broker: RunningBroker) -> None:
    with shop.sessions() as session:
        session.add_all([Order(item="tea"), Order(item="tea")])
        shop.outbox.send(session, shop.place.topic, "twice")
        with pytest.raises(IntegrityError):
            session.commit()

    assert shop.received(broker) == []
    assert broker.wire().get(f"/v1/producer-groups/{shop.place.group}").status == 404


def test_a_refusal_of_the_broker_rolls_back_and_cannot_be_committed_over(shop: Shop) -> None:
    with shop.sessions() as session:
        session.add(Order(item="tea"))
        shop.outbox.send(session, "no topic", "refused")
        with pytest.raises(TopicIllegal):
            session.commit()
        with pytest.raises(BarrierError, match="must be rolled back"):
            session.commit()
        session.rollback()
        session.add(Order(item="coffee"))
        session.commit()

    assert (shop.orders(), shop.rows()) == (["coffee"], 0)


def test_a_broker_that_is_away_rolls_back(place: Place) -> None:
    shop = shop_at(place, Broker("http://127.0.0.1:1", "key"))

    def buy() -> None:
        with shop.sessions.begin() as session:
            session.add(Order(item="tea"))
            shop.outbox.send(session, place.topic, "away")

    with pytest.raises(Unreachable):
        buy()

    assert (shop.orders(), shop.rows()) == ([], 0)


def test_what_would_never_be_sent_is_refused(shop: Shop) -> None:
    with shop.sessions(autobegin=False) as session, pytest.raises(OutsideTransaction, match=r"call session\.begin\(\)"):
        shop.outbox.send(session, shop.place.topic, "outside")
    with Session(shop.outbox.engine) as foreign, pytest.raises(BarrierError, match=r"call outbox\.listen"):
        shop.outbox.send(foreign, shop.place.topic, "not listened to")


def test_a_session_of_another_database_than_the_outboxs_is_refused(shop: Shop) -> None:
    """Its row would lie where no check looks: the check would roll back what has committed."""
    shop.sessions.configure(bind=sa.create_engine("sqlite://"))

    with shop.sessions() as session, pytest.raises(BarrierError, match="give the outbox the engine of the session"):
        shop.outbox.send(session, shop.place.topic, "elsewhere")


def test_a_session_of_two_databases_sends_with_that_of_the_outbox(shop: Shop, broker: RunningBroker) -> None:
    shop.sessions.configure(bind=None, binds={Order: shop.outbox.engine, Base: sa.create_engine("sqlite://")})
    with shop.sessions.begin() as session:
        session.add(Order(item="tea"))
        shop.outbox.send(session, shop.place.topic, "tea")

    assert (shop.received(broker), shop.orders(), shop.rows()) == ([b"tea"], ["tea"], 1)


@pytest.fixture(params=["sqlite+aiosqlite", "postgresql+psycopg"])
def asynchronous(request: pytest.FixtureRequest, place: Place) -> Iterator[tuple[Place, str]]:
    """A place, and the address of its asynchronous engine."""
    if request.param == "sqlite+aiosqlite":
        yield place, place.url.replace("sqlite://", "sqlite+aiosqlite:///")
        return
    with places.postgresql("read committed") as made:
        made.barrier.create_table()
        made.run("CREATE TABLE numbered (number serial PRIMARY KEY, item varchar UNIQUE)")
        yield made, made.url.replace("postgresql", request.param, 1)


Work = Callable[[Outbox, "async_sessionmaker[AsyncSession]"], Awaitable[Any]]


async def buy(outbox: Outbox, sessions: "async_sessionmaker[AsyncSession]", topic: str) -> None:
    async with sessions.begin() as session:
        session.add(Order(item="coffee"))
        outbox.send(session, topic, "coffee")


def asynchronously(place: Place, url: str, broker: Broker, work: Work) -> Any:
    async def run() -> Any:
        engine = create_async_engine(url)
        outbox, sessions = Outbox(Producer(broker, place.group), engine), async_sessionmaker(engine)
        outbox.listen(sessions)
        try:
            return await work(outbox, sessions)
        finally:
            await engine.dispose()

    return asyncio.run(run())


def test_an_async_session_sends_with_its_transaction(asynchronous: tuple[Place, str], broker: RunningBroker) -> None:
    place, url = asynchronous

    async def work(outbox: Outbox, sessions: "async_sessionmaker[AsyncSession]") -> None:
        session = async_scoped_session(sessions, asyncio.current_task)
        async with session.begin():
            order = Order(item="tea")
            session.add(order)
            await session.flush()
            outbox.send(session, place.topic, {"order": order.number})
            with suppress(Declined):
                async with session.begin_nested():
                    outbox.send(session, place.topic, "rolled back")
                    raise Declined
        await session.remove()
        async with sessions() as first:
            outbox.send(first, place.topic, "before a statement")
            await first.commit()
        with pytest.raises(TopicIllegal):
            await buy(outbox, sessions, "no topic")

    asynchronously(place, url, broker.client(), work)

    found = Shop(place, None, None)  # type: ignore[arg-type]  # only looks at what is there
    assert found.received(broker) == [b"before a statement", b'{"order":1}']
    assert (found.orders(), found.rows()) == (["tea"], 2)


def test_the_event_loop_goes_on_while_the_broker_is_tried(place: Place) -> None:
    url = place.url.replace("sqlite://", "sqlite+aiosqlite:///")

    ticks: list[int] = []

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.01)
            ticks.append(1)

    async def work(outbox: Outbox, sessions: "async_sessionmaker[AsyncSession]") -> None:
        ticking = asyncio.create_task(tick())
        with pytest.raises(Unreachable):
            await buy(outbox, sessions, place.topic)
        ticking.cancel()

    asynchronously(place, url, Broker("http://127.0.0.1:1", "key"), work)

    assert len(ticks) > 5


def test_checks_of_an_asynchronous_engine_are_answered_in_any_thread(asynchronous: tuple[Place, str]) -> None:
    place, url = asynchronous
    outbox = Outbox(Producer(Broker("http://127.0.0.1:1", "key"), place.group), create_async_engine(url))
    asked = places.half()

    assert outbox(asked) == "ROLLBACK"
    assert place.barrier.check(asked) == "ROLLBACK"
