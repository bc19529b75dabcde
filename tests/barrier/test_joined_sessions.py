"""A session that is joined to a transaction of its connection: the message goes with that transaction's COMMIT."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
import sqlalchemy as sa
from mqbroker_client import Broker, Consumer, Producer
from mqbroker_client.barrier.errors import BarrierError
from mqbroker_client.contrib.sqlalchemy import Outbox
from mqbroker_client.core.errors import Unreachable
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker

from tests.barrier.local import engine_url, validate_constraints
from tests.barrier.places import Place
from tests.broker.characters import bodies, name
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import received_until_empty, told

pytestmark = pytest.mark.parametrize("place", ["read committed", "mariadb", "sqlite"], indirect=True)

JOINS = ("conditional_savepoint", "rollback_only", "create_savepoint")


class Declined(Exception):
    """Rolls back."""


@dataclass(frozen=True)
class Shop:
    """A database, the outbox of its sessions, and what of a test's orders is in the database and at the broker."""

    place: Place
    outbox: Outbox
    sessions: "sessionmaker[Session]"
    topic: str

    @property
    def engine(self) -> sa.Engine:
        return self.outbox.engine

    def order(self, session: Session, item: str) -> None:
        """Books an order, and sends it."""
        insert(session, f"{self.topic}-{item}")
        self.outbox.send(session, self.topic, item)

    def found(self, broker: RunningBroker) -> tuple[list[str], list[str]]:
        """The orders that are booked, and those that are delivered."""
        return booked(self.place, self.topic), delivered(broker, self.topic)


def insert(session: "Session | sa.Connection", order_id: str, customer_id: str | None = None) -> None:
    row = {"order_id": order_id, "customer_id": customer_id}
    session.execute(sa.text("INSERT INTO orders VALUES (:order_id, :customer_id)"), row)


def booked(place: Place, topic: str) -> list[str]:
    return sorted(order.removeprefix(f"{topic}-") for order in place.orders() if order.startswith(f"{topic}-"))


def delivered(broker: RunningBroker, topic: str) -> list[str]:
    found = bodies(received_until_empty(Consumer(broker.client(), name("coupons")), topic))
    return sorted(body.decode() for body in found)


def rolled_back(place: Place) -> set[str]:
    """The transactions whose rows say ROLLBACK."""
    return {one for (one,) in place.run("SELECT transaction_id FROM mqbroker_barrier WHERE decision = 'ROLLBACK'")}


def shop_at(place: Place, broker: Broker, kind: type[Outbox] = Outbox) -> Shop:
    engine = sa.create_engine(engine_url(place.url))
    validate_constraints(engine)
    outbox, sessions = kind(Producer(broker, place.group), engine), sessionmaker(engine)
    outbox.listen(sessions)
    return Shop(place, outbox, sessions, name("orders"))


@pytest.fixture
def shop(place: Place, broker: RunningBroker) -> Iterator[Shop]:
    shop = shop_at(place, broker.client())
    # The topic is there, also where nothing is sent.
    Producer(broker.client(), place.group).send(shop.topic, b"first")
    yield shop
    shop.engine.dispose()


@pytest.mark.parametrize("join", JOINS)
def test_a_message_is_delivered_when_the_connections_transaction_commits(
    shop: Shop, broker: RunningBroker, join: str
) -> None:
    for ends in ("rollback", "commit"):
        with shop.engine.connect() as connection:
            transaction = connection.begin()
            insert(connection, f"{shop.topic}-{ends}")
            with shop.sessions(bind=connection, join_transaction_mode=join) as session:
                shop.order(session, f"by {ends}")
                session.commit()
            assert delivered(broker, shop.topic) == ["first"]
            getattr(transaction, ends)()

    assert shop.found(broker) == (["by commit", "commit"], ["by commit", "first"])


def test_a_session_that_controls_its_connections_transaction_commits_it(shop: Shop, broker: RunningBroker) -> None:
    with shop.engine.connect() as connection:
        connection.begin()
        with shop.sessions(bind=connection, join_transaction_mode="control_fully") as session:
            shop.order(session, "tea")
            session.commit()
            shop.order(session, "coffee")
            session.rollback()

    assert shop.found(broker) == (["tea"], ["first", "tea"])


def test_a_session_that_begins_its_connections_transaction_sends_with_its_own_commit(
    shop: Shop, broker: RunningBroker
) -> None:
    with shop.engine.connect() as connection, shop.sessions(bind=connection) as session:
        shop.outbox.send(session, shop.topic, "before a statement")
        session.commit()
        shop.order(session, "tea")
        session.rollback()
        shop.order(session, "coffee")
        session.commit()

    assert shop.found(broker) == (["coffee"], ["before a statement", "coffee", "first"])


def test_a_savepoint_around_a_joined_session_takes_its_messages_along(shop: Shop, broker: RunningBroker) -> None:
    with shop.engine.begin() as connection:
        insert(connection, f"{shop.topic}-outer")
        for kept in (True, False):
            with suppress(Declined), connection.begin_nested():
                with shop.sessions(bind=connection) as session:
                    shop.order(session, f"kept {kept}")
                    with suppress(Declined), session.begin_nested():
                        shop.order(session, "rolled back")
                        raise Declined
                    session.commit()
                with suppress(Declined), connection.begin_nested():
                    raise Declined
                if not kept:
                    raise Declined

    assert shop.found(broker) == (["kept True", "outer"], ["first", "kept True"])


def test_messages_of_two_joined_sessions_are_one_transaction(shop: Shop, broker: RunningBroker) -> None:
    with shop.engine.begin() as connection:
        for item in ("tea", "coffee"):
            with shop.sessions(bind=connection) as session:
                shop.order(session, item)
                session.commit()
        with shop.sessions(bind=connection) as session:
            shop.outbox.send(session, shop.topic, "rolled back before a statement")
            session.rollback()

    deliveries = received_until_empty(Consumer(broker.client(), name("coupons")), shop.topic)
    by_body = {delivery.body: delivery.message.transaction_id for delivery in deliveries}
    assert set(by_body) == {b"first", b"tea", b"coffee"}
    assert by_body[b"tea"] == by_body[b"coffee"]


def test_a_joined_session_that_never_ended_its_work_cannot_be_committed_over(shop: Shop, broker: RunningBroker) -> None:
    def buy() -> None:
        with shop.engine.begin() as connection, shop.sessions(bind=connection) as session:
            shop.order(session, "tea")

    with pytest.raises(BarrierError, match=r"call its commit\(\) before that of the connection"):
        buy()

    assert shop.found(broker) == ([], ["first"])


def test_two_outboxes_send_with_one_transaction_or_none(shop: Shop, broker: RunningBroker) -> None:
    other = Outbox(Producer(broker.client(), name("other-service")), shop.engine)
    other.listen(shop.sessions)

    for topic in ("no topic", shop.topic):
        with suppress(Exception), shop.engine.begin() as connection, shop.sessions(bind=connection) as session:
            shop.order(session, f"of {topic}")
            other.send(session, topic, "by the other")
            session.commit()

    assert shop.found(broker) == ([f"of {shop.topic}"], ["by the other", "first", f"of {shop.topic}"])


def test_a_broker_that_is_away_rolls_back_the_connections_transaction(place: Place) -> None:
    shop = shop_at(place, Broker("http://127.0.0.1:1", "key"))
    with shop.engine.connect() as connection:
        transaction = connection.begin()
        with shop.sessions(bind=connection) as session:
            shop.order(session, "tea")
            session.commit()
        with pytest.raises(Unreachable):
            transaction.commit()
        transaction.rollback()
        with connection.begin():
            insert(connection, f"{shop.topic}-next")

    assert booked(place, shop.topic) == ["next"]
    shop.engine.dispose()


def test_a_commit_of_the_connection_that_is_refused_is_ended_as_rollback(shop: Shop, broker: RunningBroker) -> None:
    if not shop.place.defers:
        pytest.skip("MariaDB refuses nothing at a COMMIT")
    before = rolled_back(shop.place)
    with shop.engine.connect() as connection:
        transaction = connection.begin()
        with shop.sessions(bind=connection) as session:
            insert(session, f"{shop.topic}-tea", "nobody's")
            shop.outbox.send(session, shop.topic, "tea")
            session.commit()
        with pytest.raises(IntegrityError):
            transaction.commit()
        transaction.rollback()

    assert shop.found(broker) == ([], ["first"])
    [refused] = rolled_back(shop.place) - before
    assert told(broker.wire(), refused)["state"] == "ROLLED_BACK"


def test_a_transaction_in_two_phases_delivers_when_it_has_committed(shop: Shop, broker: RunningBroker) -> None:
    if shop.place.kind != "mysql":
        pytest.skip("SQLite has no second phase, and the tests' PostgreSQL prepares no transactions")
    for ends in ("commit", "rollback"):
        with shop.sessions(twophase=True) as session:
            shop.order(session, f"own {ends}")
            session.prepare()
            getattr(session, ends)()
        with shop.engine.connect() as connection:
            transaction = connection.begin_twophase()
            with shop.sessions(bind=connection) as session:
                shop.order(session, f"joined {ends}")
                session.commit()
            transaction.prepare()
            assert "joined" not in " ".join(delivered(broker, shop.topic))
            getattr(transaction, ends)()

    assert booked(shop.place, shop.topic) == ["joined commit", "own commit"]
    assert "own commit" in delivered(broker, shop.topic)
    # No event tells that a joined one has committed: a check does.
    eventually(
        lambda: (
            shop.outbox.answer_checks(seconds=1) >= 0
            and delivered(broker, shop.topic) == ["first", "joined commit", "own commit"]
        )
    )


def test_an_async_session_that_is_joined_sends_with_its_connections_transaction(
    place: Place, broker: RunningBroker
) -> None:
    if place.kind == "mysql":
        pytest.skip("no asynchronous driver of MariaDB is among the tests' packages")
    topic = name("orders")
    Producer(broker.client(), place.group).send(topic, b"first")

    async def buy(engine: AsyncEngine, outbox: Outbox, sessions: "async_sessionmaker[AsyncSession]", ends: str) -> None:
        async with engine.connect() as connection:
            transaction = await connection.begin()
            async with sessions(bind=connection) as session:
                await session.execute(sa.text(f"INSERT INTO orders (order_id) VALUES ('{topic}-{ends}')"))
                outbox.send(session, topic, ends)
                await session.commit()
            assert await asyncio.to_thread(delivered, broker, topic) == ["first"]
            await getattr(transaction, ends)()

    async def run() -> None:
        engine = create_async_engine(engine_url(place.url, "aiosqlite"))
        outbox, sessions = Outbox(Producer(broker.client(), place.group), engine), async_sessionmaker(engine)
        outbox.listen(sessions)
        for ends in ("rollback", "commit"):
            await buy(engine, outbox, sessions, ends)
        await engine.dispose()

    asyncio.run(run())

    assert (booked(place, topic), delivered(broker, topic)) == (["commit"], ["commit", "first"])
