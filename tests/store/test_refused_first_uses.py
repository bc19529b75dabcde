"""The first use of a topic or a group by a message that is refused as another one: nothing is made for it."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.broker import characters
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire, problem


@pytest.fixture
def stored(wire: Wire, orders: str) -> Document:
    """A message that is stored; what is sent under its id is another one."""
    message = {"topic": orders, "body": "order 1", "message_id": str(uuid.uuid4())}
    assert wire.post("/v1/messages", message).status == 201
    return message


@pytest.fixture
def transaction(wire: Wire, orders: str) -> Document:
    """A transaction that was begun."""
    half = {
        "topic": orders,
        "body": "order 1",
        "producer_group": characters.name("shop"),
        "transaction_id": str(uuid.uuid4()),
    }
    assert wire.post("/v1/transactions", half).status == 201
    return half


def test_a_message_whose_id_is_another_ones_makes_no_topic(wire: Wire, stored: Document, coupons: str) -> None:
    another = {**stored, "topic": coupons}
    sentence = f"The message_id {stored['message_id']} was used for another message: use a new id for a new message."
    refusal = problem(409, "message_id_reused", sentence)

    assert wire.post("/v1/messages", another).problem == refusal
    assert wire.post("/v1/messages", {**another, "delay_level": 1}).problem == refusal
    assert wire.post("/v1/messages/batch", {"messages": [another]}).problem == refusal
    assert [result["status"] for result in wire.bulk({"op": "send", **another})] == [409]

    assert wire.get(f"/v1/topics/{coupons}").status == 404


def test_a_half_message_whose_id_is_another_ones_makes_no_group_and_no_topic(
    wire: Wire, stored: Document, coupons: str
) -> None:
    shop = characters.name("shop")
    several = [{"topic": coupons, "body": "coupon"}, stored]

    assert wire.post("/v1/transactions", {**stored, "producer_group": shop}).status == 409
    assert wire.post("/v1/transactions", {"producer_group": shop, "messages": several}).status == 409
    assert [result["status"] for result in wire.bulk({"op": "half", **stored, "producer_group": shop})] == [409]

    assert wire.get(f"/v1/producer-groups/{shop}").status == 404
    assert wire.get(f"/v1/topics/{coupons}").status == 404


def test_a_transaction_whose_id_is_another_ones_makes_no_group_and_no_topic(
    wire: Wire, transaction: Document, coupons: str
) -> None:
    shop = characters.name("shop")
    sentence = f"The transaction_id {transaction['transaction_id']} was used for another transaction: use a new id."
    refusal = problem(409, "message_id_reused", sentence)

    assert wire.post("/v1/transactions", {**transaction, "producer_group": shop}).problem == refusal
    assert wire.post("/v1/transactions", {**transaction, "topic": coupons}).problem == refusal

    assert wire.get(f"/v1/producer-groups/{shop}").status == 404
    assert wire.get(f"/v1/topics/{coupons}").status == 404


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as callers:
        yield callers


def test_the_first_use_in_many_requests_at_once_is_one_transaction_and_its_repeats(
    broker: RunningBroker, callers: ThreadPoolExecutor
) -> None:
    for _ in range(10):
        half = {
            "topic": characters.name("orders"),
            "body": "order 1",
            "producer_group": characters.name("shop"),
            "transaction_id": str(uuid.uuid4()),
        }
        ways = [broker.wire(web=number % 2) for number in range(16)]
        answers = [callers.submit(way.post, "/v1/transactions", half) for way in ways]

        assert sorted(answer.result().status for answer in answers) == [200] * 15 + [201]
