"""A handler under `exactly_once` has one effect for each message, however often it comes."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mqbroker_client import Consumer, Delivery, Producer
from mqbroker_client.barrier.errors import OutsideTransaction
from mqbroker_client.barrier.inbox import Inbox
from mqbroker_client.contrib.sqlalchemy import create_inbox, exactly_once, exactly_once_async
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker

from mqbroker.embedded.commands import ROOT
from tests.barrier import places, processes
from tests.barrier.conftest import make_barrier
from tests.barrier.places import Place
from tests.broker.characters import name
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import received_until_empty

DATABASES = ("postgresql", "mariadb", "sqlite")


@pytest.fixture(params=DATABASES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A consumer's database, with orders and an inbox."""
    with _opened(request, tmp_path) as made:
        Inbox("payments", made.connect).create_table()
        yield made


@contextmanager
def _opened(request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield places.sqlite(folder)
    elif request.param == "mariadb":
        with places.of_mariadb(request.getfixturevalue("mariadb_server")) as made:
            yield made
    else:
        with places.postgresql("read committed") as made:
            yield made


@pytest.fixture
def delivery(broker: RunningBroker, orders: str) -> Delivery:
    """A message that was received."""
    Producer(broker.client(), orders).send(orders, b"1")
    [received] = Consumer(broker.client(), orders).receive(orders)
    return received


class Payments:
    """A handler whose effect is a row; its first `failures` calls raise behind the effect."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures

    def pay(self, delivery: Delivery, connection: Any) -> str:
        connection.cursor().execute(f"INSERT INTO orders (order_id) VALUES ('{name('paid')}')")
        if self.failures:
            self.failures -= 1
            raise ValueError("no money")
        return "paid"


def test_a_message_that_comes_again_has_no_second_effect(place: Place, delivery: Delivery) -> None:
    pay = Inbox("payments", place.connect).exactly_once(Payments().pay)

    assert [pay(delivery) for _ in range(3)] == ["paid", None, None]
    assert len(place.orders()) == 1


def test_a_message_that_comes_to_many_at_once_has_one_effect(place: Place, delivery: Delivery) -> None:
    pay = Inbox("payments", place.connect).exactly_once(Payments().pay)

    with ThreadPoolExecutor(8) as threads:
        results = [
            future.exception() or future.result() for future in [threads.submit(pay, delivery) for _ in range(8)]
        ]

    # A database may end one of two that wait for each other; such a message comes again.
    assert results.count("paid") == 1
    assert len(place.orders()) == 1


def test_a_handler_that_fails_leaves_nothing_and_is_tried_again(place: Place, delivery: Delivery) -> None:
    pay = Inbox("payments", place.connect).exactly_once(Payments(failures=1).pay)

    with pytest.raises(ValueError, match="no money"):
        pay(delivery)
    assert place.orders() == set()
    assert pay(delivery) == "paid"


@pytest.mark.parametrize("place", ["postgresql", "mariadb"], indirect=True)
def test_a_handler_that_fails_on_a_lost_connection_says_why_itself(place: Place, delivery: Delivery) -> None:
    def pay(delivery: Delivery, connection: Any) -> None:
        place.cut()
        raise ValueError("no money")

    with pytest.raises(ValueError, match="no money"):
        Inbox("payments", place.connect).exactly_once(pay)(delivery)


def test_a_handler_that_no_thread_can_run_leaves_nothing_in_the_inbox(tmp_path: Path, delivery: Delivery) -> None:
    """Else the message that comes again, to the mended handler, would be taken for done."""
    path = tmp_path / "shop.sqlite3"
    inbox = Inbox("payments", lambda: sqlite3.connect(path))
    inbox.create_table()
    engine = create_engine(f"sqlite:///{path}")

    @inbox.exactly_once
    async def pay(delivery: Delivery, connection: sqlite3.Connection) -> None: ...

    @exactly_once("payments", sessionmaker(engine))
    async def pay_in_session(delivery: Delivery, session: Session) -> None: ...

    for handle in (pay, pay_in_session):
        with pytest.raises(TypeError, match="the handler returned a coroutine and nothing of it has run"):
            handle(delivery)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM mqbroker_inbox")).scalar() == 0
    engine.dispose()


def test_each_group_has_an_inbox_of_its_own(place: Place, delivery: Delivery) -> None:
    for group in ("payments", "reports"):
        assert Inbox(group, place.connect).exactly_once(Payments().pay)(delivery) == "paid"


def test_old_rows_are_deleted(place: Place, delivery: Delivery) -> None:
    inbox = Inbox("payments", place.connect)
    inbox.exactly_once(Payments().pay)(delivery)
    assert inbox.purge() == 0

    place.run("UPDATE mqbroker_inbox SET handled_at = '2020-01-01 00:00:00'")

    assert inbox.purge() == 1


def test_a_connection_in_autocommit_mode_is_refused(tmp_path: Path, delivery: Delivery) -> None:
    inbox = Inbox("payments", lambda: sqlite3.connect(tmp_path / "file", isolation_level=None))

    with pytest.raises(OutsideTransaction, match="the connection is in autocommit mode"):
        inbox.exactly_once(Payments().pay)(delivery)


def test_a_consumer_that_dies_before_its_ack_has_had_its_effect_once(
    place: Place, broker: RunningBroker, orders: str
) -> None:
    Producer(broker.client(), orders).send(orders, b"1")
    consumer = Consumer(broker.client(), orders)
    pay = Inbox("payments", place.connect).exactly_once(Payments().pay)
    for _ in range(2):
        # Never acked: as a process that is killed between COMMIT and ack.
        [received] = consumer.receive(orders, invisible_seconds=1, wait_seconds=10)
        pay(received)

    assert received.delivery_attempt == 2
    assert len(place.orders()) == 1


def test_a_session_of_sqlalchemy_has_one_effect(tmp_path: Path, delivery: Delivery) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'shop.sqlite3'}")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (order_id varchar(36))"))
        create_inbox(connection)

    @exactly_once("payments", sessionmaker(engine))
    def pay(delivery: Delivery, session: Session) -> None:
        session.execute(text("INSERT INTO orders VALUES (:body)"), {"body": delivery.body.decode()})

    pay(delivery)
    pay(delivery)

    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM orders")).scalar() == 1


async def test_an_async_session_of_sqlalchemy_has_one_effect(tmp_path: Path, delivery: Delivery) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'shop.sqlite3'}")
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE orders (order_id varchar(36))"))
        await connection.run_sync(create_inbox)

    @exactly_once_async("payments", async_sessionmaker(engine))
    async def pay(delivery: Delivery, session: AsyncSession) -> None:
        await session.execute(text("INSERT INTO orders VALUES (:body)"), {"body": delivery.body.decode()})

    await pay(delivery)
    await pay(delivery)

    async with engine.connect() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM orders"))).scalar() == 1
    await engine.dispose()


@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
def test_django_consumes_by_a_command_and_sends_with_the_effect(
    kind: str, broker: RunningBroker, orders: str, coupons: str, tmp_path: Path
) -> None:
    with places.postgresql("read committed") if kind == "postgresql" else _here(tmp_path) as place:
        make_barrier(place, "django")
        producer, reader = Producer(broker.client(), orders), Consumer(broker.client(), coupons)
        for body in (b"lucky", b"unlucky"):
            producer.send(orders, body)

        with consuming(place, broker, orders, coupons) as program:
            eventually(lambda: len(place.orders()) == 2)
            # Every message once more, as after a lost ack.
            broker.client().call("PUT", f"/v1/consumer-groups/{orders}/offsets", {"topic": orders, "to": "earliest"})
            eventually(lambda: _handled_all(broker, orders))
            program.send_signal(signal.SIGTERM)
            assert program.wait(120) == 0

        onward = sorted(delivery.body for delivery in received_until_empty(reader, coupons))
        assert sorted(order.rsplit("-", 1)[0] for order in place.orders()) == ["lucky", "unlucky"]
        assert onward == [b"paid lucky", b"paid unlucky"]


@contextmanager
def _here(folder: Path) -> Iterator[Place]:
    yield places.sqlite(folder)


@contextmanager
def consuming(place: Place, broker: RunningBroker, topic: str, onward: str) -> Iterator[subprocess.Popen[str]]:
    """`manage.py mqbroker consume`."""
    words = [sys.executable, "-m", "tests.barrier.site", place.words(), broker.url]
    words += ["mqbroker", "consume", topic, topic, "tests.client.django_handlers.pay", "--unordered"]
    with subprocess.Popen(words, env=processes.environment() | {"ONWARD": onward}, cwd=ROOT, text=True) as program:
        try:
            yield program
        finally:
            program.kill()


def _handled_all(broker: RunningBroker, group: str) -> bool:
    found = broker.client().call("GET", f"/v1/consumer-groups/{group}")["lag"]
    return bool(found) and not any(queue["lag"] or queue["oldest_unacked_at"] for queue in found)
