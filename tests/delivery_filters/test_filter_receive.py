"""Consumers receive what their filter takes, and their group is done with the rest."""

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire, problem
from tests.delivery_filters.dear import PROPERTIES, Narrow, dear_filter
from tests.delivery_filters.test_filter_refusals import ALLOWED

# More than one look of a receive at each of four queues.
MANY = 3000


@pytest.fixture
def stocked(wire: Wire, orders: str) -> str:
    """A topic with orders of several prices and regions."""
    for number, (tags, region) in enumerate([("paid", "eu"), ("paid", "us"), ("cancelled", "eu"), ("new", "eu")]):
        properties = {"price": str(number * 10), "region": region}
        message = {"topic": orders, "body": str(number), "tags": tags, "properties": properties, "queue_id": 0}
        assert wire.post("/v1/messages", message).status == 201
    return orders


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("*", [b"0", b"1", b"2", b"3"]),
        ("paid || new", [b"0", b"1", b"3"]),
        ({"sql": "price > 5 AND region = 'eu'"}, [b"2", b"3"]),
        ({"sql": "price BETWEEN 10 AND 20 OR TAGS = 'new'"}, [b"1", b"2", b"3"]),
        ({"sql": "discount IS NOT NULL"}, []),
    ],
)
def test_a_consumer_receives_what_its_filter_takes(
    consumer: Consumer, stocked: str, given: str | dict[str, str], wanted: list[bytes]
) -> None:
    assert bodies(consumer.receive(stocked, filter=given)) == wanted
    # What it passed over is done for the group, as in RocketMQ.
    assert consumer.receive(stocked) == []


def test_a_retried_message_is_judged_by_the_filter_again(consumer: Consumer, stocked: str) -> None:
    dear = {"sql": "price > 25"}
    consumer.nack(consumer.receive(stocked, filter=dear), delay_seconds=0)

    [retried] = eventually(lambda: consumer.receive(stocked, filter=dear))

    assert (retried.body, retried.delivery_attempt) == (b"3", 2)


def test_a_wanted_message_behind_thousands_is_received_at_once(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    for _ in range(MANY // 1000):
        cheap = {"op": "send", "topic": orders, "body": "cheap", "properties": {"price": "1"}}
        assert {result["status"] for result in wire.bulk(*[cheap] * 1000)} == {201}
    wire.post("/v1/messages", {"topic": orders, "body": "dear", "properties": {"price": "100"}})

    assert bodies(consumer.receive(orders, filter={"sql": "price > 10"}, wait_seconds=4)) == [b"dear"]


def test_a_wanted_message_behind_megabytes_of_properties_is_received_at_once(
    broker: RunningBroker, wire: Wire, consumer: Consumer
) -> None:
    narrow = Narrow(broker)
    for _ in range(2):
        narrow.stock(PROPERTIES["many properties"])
    wanted = {"topic": narrow.topic, "body": "wanted", "properties": {"a": "-1000"}}
    wire.post("/v1/messages", wanted)

    received = consumer.receive(narrow.topic, filter=dear_filter(0), wait_seconds=10)

    assert bodies(received) == [b"wanted"]
    # What lies in queues that it had not reached yet is passed over now, and all of that is done for the group.
    assert consumer.receive(narrow.topic, filter=dear_filter(0), wait_seconds=3) == []
    assert consumer.receive(narrow.topic) == []


def test_a_bad_filter_is_refused_with_its_position(wire: Wire, consumer: Consumer, stocked: str) -> None:
    asked = {"topic": stocked, "filter": {"sql": "price > 10 AND region LIKE 'e%'"}}

    answer = wire.post(f"/v1/consumer-groups/{consumer.group}/receive", asked)

    detail = f"The filter cannot be used: LIKE at position 23: an operator is expected here. {ALLOWED}"
    assert answer.problem == problem(422, "filter_illegal", detail, position=23)
    assert len(consumer.receive(stocked)) == 4
