"""Receive: hides what it hands out from the rest of its group, until it is acked or its time is over."""

from collections import Counter
from functools import partial
from zlib import crc32

import pytest
from mqbroker_client import Admin, Consumer, Delivery, Producer

from tests.broker import characters
from tests.broker.characters import bodies
from tests.broker.load import Crowd, at_once
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import received_until_empty
from tests.broker.wire import Document, Wire, problem

MESSAGES = 400
CONSUMERS = 16


def test_a_received_message_is_hidden_from_its_group_and_from_no_other(
    broker: RunningBroker, producer: Producer, consumer: Consumer, distant_consumer: Consumer, orders: str
) -> None:
    other_group = Consumer(broker.client(), characters.name("mail-service"))
    producer.send(orders, b"order 1")

    [delivery] = consumer.receive(orders)

    assert (delivery.body, delivery.delivery_attempt, delivery.message.reconsume_times) == (b"order 1", 1, 0)
    assert consumer.receive(orders) + distant_consumer.receive(orders) == []
    assert bodies(other_group.receive(orders)) == [b"order 1"]


def test_an_unacked_message_comes_again_and_an_acked_one_does_not(
    broker: RunningBroker, producer: Producer, consumer: Consumer, distant_consumer: Consumer, orders: str
) -> None:
    acked = producer.send(orders, b"order 1", queue_id=0)
    forgotten = producer.send(orders, b"order 2", queue_id=0, tags="paid", keys=["o-2"], properties={"region": "eu"})
    first, second = consumer.receive(orders, invisible_seconds=1)
    consumer.ack([first])

    [again] = eventually(partial(distant_consumer.receive, orders))

    assert (first.message.message_id, second.message.message_id) == (acked.message_id, forgotten.message_id)
    assert (again.body, again.delivery_attempt, again.message.reconsume_times) == (b"order 2", 2, 1)
    assert again.message.properties == {
        "region": "eu",
        "RETRY_TOPIC": orders,
        "ORIGIN_MESSAGE_ID": str(forgotten.message_id),
        "RECONSUME_TIME": "1",
    }
    assert (again.message.topic, again.message.tags, again.message.keys) == (orders, "paid", ("o-2",))
    assert again.message.commit_log_offset == forgotten.commit_log_offset


def test_a_message_that_is_never_acked_becomes_a_dead_letter_of_its_group(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(
        consumer.group, max_reconsume_times=2, retry_policy={"kind": "table", "delay_seconds": [0]}
    )
    sent = producer.send(orders, b"order 1", properties={"region": "eu"})
    attempts: list[Delivery] = []
    while len(attempts) < 3:
        attempts += eventually(partial(consumer.receive, orders, invisible_seconds=1))

    dead = eventually(lambda: dead_letters(consumer))

    assert [attempt.delivery_attempt for attempt in attempts] == [1, 2, 3]
    [letter] = dead
    assert (letter["message"]["message_id"], letter["message"]["body"]) == (str(sent.message_id), "order 1")
    assert letter["message"]["properties"]["region"] == "eu"
    assert consumer.receive(orders) == []


async def test_consumers_of_a_group_share_its_messages_and_no_message_goes_to_two(
    broker: RunningBroker, consumer: Consumer, orders: str
) -> None:
    sent = [f"order {number}" for number in range(MESSAGES)]

    async def consume(_: int) -> list[str]:
        found: list[str] = []
        while True:
            asked = {"topic": orders, "max_messages": 7}
            _, document = await crowd.post(f"/v1/consumer-groups/{consumer.group}/receive", asked)
            if not document["messages"]:
                return found
            found += [entry["message"]["body"] for entry in document["messages"]]

    async with Crowd(broker.urls) as crowd:
        await crowd.bulk({"op": "send", "topic": orders, "body": body} for body in sent)
        received = await at_once(consume, range(CONSUMERS))

    assert Counter(body for bodies in received for body in bodies) == dict.fromkeys(sent, 1)


def test_a_group_that_starts_at_the_latest_sees_only_what_comes_after_its_first_receive(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, start_at="latest")
    producer.send(orders, b"order 1")
    assert consumer.receive(orders) == []

    producer.send(orders, b"order 2")

    assert bodies(consumer.receive(orders)) == [b"order 2"]


@pytest.mark.parametrize(
    ("filter", "wanted"),
    [
        ("plumless", [b"plumless"]),
        ("plumless || paid", [b"paid", b"plumless"]),
        (" paid||sent ", [b"paid", b"sent"]),
        ("*", [b"buckeroo", b"paid", b"plumless", b"sent", b"untagged"]),
        ("refunded", []),
    ],
)
def test_a_filter_compares_the_tag_itself_and_not_its_hash(
    producer: Producer, consumer: Consumer, orders: str, filter: str, wanted: list[bytes]
) -> None:
    assert crc32(b"plumless") == crc32(b"buckeroo")
    for tags in ("plumless", "buckeroo", "paid", "sent"):
        producer.send(orders, tags.encode(), tags=tags)
    producer.send(orders, b"untagged")

    found = received_until_empty(consumer, orders, filter)

    assert sorted(bodies(found)) == wanted


def test_a_filter_finds_the_one_that_it_wants_behind_many_that_it_does_not(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    wire.bulk(*({"op": "send", "topic": orders, "body": "x", "tags": "other", "queue_id": 0} for _ in range(600)))
    producer.send(orders, b"order 1", tags="paid", queue_id=0)

    found = eventually(partial(consumer.receive, orders, filter="paid"))

    assert bodies(found) == [b"order 1"]


@pytest.mark.parametrize("filter", ["", "a|b", "a || ", 7, ["a"]])
def test_a_filter_that_is_none_is_refused(wire: Wire, producer: Producer, orders: str, filter: object) -> None:
    producer.send(orders, b"order 1")

    answer = wire.post("/v1/consumer-groups/coupon-service/receive", {"topic": orders, "filter": filter})

    assert (answer.status, answer.problem["code"]) == (422, "filter_illegal")


@pytest.mark.parametrize(
    ("asked", "detail"),
    [
        ({"max_messages": 0}, "max_messages 0 is not between 1 and 32."),
        ({"max_messages": 33}, "max_messages 33 is not between 1 and 32."),
        ({"invisible_seconds": 0.5}, "invisible_seconds 0.5 is not between 1 and 43200."),
        ({"invisible_seconds": 43201}, "invisible_seconds 43201.0 is not between 1 and 43200."),
        ({"wait_seconds": -1}, "wait_seconds -1.0 is not between 0 and 20."),
        ({"wait_seconds": 21}, "wait_seconds 21.0 is not between 0 and 20."),
    ],
)
def test_what_a_receive_asks_for_has_bounds(
    wire: Wire, producer: Producer, orders: str, asked: Document, detail: str
) -> None:
    producer.send(orders, b"order 1")

    answer = wire.post("/v1/consumer-groups/coupon-service/receive", {"topic": orders, **asked})

    assert answer.problem == problem(422, "message_illegal", detail)


def test_a_group_has_a_name(wire: Wire, producer: Producer, orders: str) -> None:
    producer.send(orders, b"order 1")

    assert wire.post("/v1/consumer-groups/a%20b/receive", {"topic": orders}).problem == problem(
        422,
        "message_illegal",
        "consumer group 'a b' is not a valid group name: 1 to 120 letters, digits and % | _ -.",
    )


def dead_letters(consumer: Consumer) -> list[Document]:
    """What a group has given up."""
    found: list[Document] = consumer.broker.call("GET", f"/v1/dead-letters/{consumer.group}")["results"]
    return found
