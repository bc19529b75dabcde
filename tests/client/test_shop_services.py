"""The shop's services as real processes: an accident costs one order, and the barrier knows what became of it."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from mqbroker_client import HalfMessage
from mqbroker_client.barrier import Barrier
from mqbroker_client.core.ids import uuid7

from examples.shop.orders import OrderBook
from examples.shop.processes import OrderProcesses, Service
from tests.broker.characters import name
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import ended

ORDINARY, COMMIT_LOST, CRASH, DECLINED, ROLLBACK_LOST = 0, 2, 4, 6, 8


@pytest.fixture
def book(tmp_path: Path) -> OrderBook:
    book = OrderBook(tmp_path / "orders.sqlite3")
    book.make()
    return book


@contextmanager
def order_service(url: str, book: OrderBook) -> Iterator[OrderProcesses]:
    with closing(OrderProcesses(API_KEY, (url, name("orders"), name("shop"), str(book.path)), count=1)) as service:
        yield service


@pytest.mark.parametrize(
    ("number", "answer", "state", "by"),
    [
        (ORDINARY, "paid", "COMMITTED", "producer"),
        (COMMIT_LOST, "paid", "COMMITTED", "check"),
        (CRASH, "without an answer", "COMMITTED", "check"),
        (DECLINED, "declined", "ROLLED_BACK", "producer"),
        (ROLLBACK_LOST, "declined", "ROLLED_BACK", "check"),
    ],
)
def test_an_order_meets_the_accident_of_its_number_and_is_decided(
    broker: RunningBroker, book: OrderBook, number: int, answer: str, state: str, by: str
) -> None:
    order_id = uuid7()
    with order_service(broker.url, book) as service:
        assert service.order(order_id, number) == answer
        transaction = eventually(partial(ended, broker.wire(), order_id))

    assert transaction["state"] == state
    assert [event["by"] for event in transaction["history"] if event["event"] == "end"] == [by]
    assert (str(order_id) in book.paid()) == (state == "COMMITTED")


def test_an_order_that_the_broker_does_not_take_is_not_paid(book: OrderBook) -> None:
    order_id = uuid7()
    with order_service("http://127.0.0.1:1", book) as service:
        assert service.order(order_id, ORDINARY) == "not taken"

    assert book.paid() == set()
    half = HalfMessage("orders", b"order", transaction_id=order_id, producer_group="shop")
    assert Barrier(book.connect, "shop").check(half) == "ROLLBACK"


@pytest.mark.parametrize("kind", ["orders", "coupons"])
def test_a_service_ends_with_the_process_that_started_it(broker: RunningBroker, tmp_path: Path, kind: str) -> None:
    there = Service(kind, API_KEY, broker.url, name("orders"), name("group"), str(tmp_path / "book"))
    assert there.process.stdin
    there.process.stdin.close()

    assert there.process.wait(120) == 0


def test_a_killed_service_is_replaced(broker: RunningBroker, book: OrderBook) -> None:
    with order_service(broker.url, book) as service:
        killed = service._free.get()
        service._free.put(killed)
        os.kill(killed.process.pid, signal.SIGKILL)
        killed.process.wait()

        assert service.order(uuid7(), ORDINARY) == "without an answer"
        assert service.order(uuid7(), ORDINARY) == "paid"
