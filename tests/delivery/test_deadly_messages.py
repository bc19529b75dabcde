"""A message that kills its consumer is a dead letter alone: what was together when it died is handed out apart."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
import pytest
from mqbroker_client import Admin, Consumer, Delivery, Producer

from tests.broker import deliveries
from tests.broker.characters import bodies
from tests.broker.polling import eventually
from tests.broker.receiving import let_deliveries_expire
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire

DEADLY = b"deadly"
MESSAGES = [b"order 1", b"order 2", DEADLY, *(b"order %d" % number for number in range(4, 11))]

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ordered": {"ordered": True},
    "fair": {"fair_by": "sharding_key"},
    "fair and ordered": {"fair_by": "sharding_key", "ordered": True},
}
EACH_KIND = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def group(broker: RunningBroker, consumer: Consumer, kind: str) -> str:
    """A group of this kind, which retries twice and at once."""
    at_once = {"kind": "table", "delay_seconds": [0]}
    Admin(broker.client()).create_consumer_group(
        consumer.group, max_reconsume_times=2, retry_policy=at_once, **KINDS[kind]
    )
    return consumer.group


def in_flight(broker: RunningBroker, topic: str, group: str) -> int:
    with psycopg.connect(broker.database_of(topic), autocommit=True) as connection:
        return deliveries.count(connection, group)


def letters(wire: Wire, group: str) -> list[Document]:
    found: list[Document] = wire.get(f"/v1/dead-letters/{group}").document["results"]
    return found


@pytest.mark.parametrize(("kind", "wanted"), [*((kind, None) for kind in KINDS), ("plain", "paid")])
def test_a_message_that_kills_its_consumer_is_the_only_dead_letter(
    broker: RunningBroker,
    wire: Wire,
    producer: Producer,
    consumer: Consumer,
    orders: str,
    group: str,
    wanted: str | None,
) -> None:
    for number, body in enumerate(MESSAGES):
        producer.send(orders, body, queue_id=0, tags="paid", sharding_key=f"customer {number}")
    done, lives = list[bytes](), 0

    def consume() -> list[Document]:
        nonlocal lives
        received = consumer.receive(orders, filter=wanted)
        if DEADLY in bodies(received):
            lives += 1
            let_deliveries_expire(broker, orders, group)
        else:
            consumer.ack(received)
            done.extend(bodies(received))
        found = letters(wire, group)
        # More than one is an answer, too: the wrong one.
        return found if len(found) > 1 or len(done) == len(MESSAGES) - 1 else []

    [letter] = eventually(consume)

    assert letter["message"]["body"] == DEADLY.decode()
    assert sorted(done) == sorted(set(MESSAGES) - {DEADLY})
    assert lives == 3


@EACH_KIND
def test_from_its_second_delivery_on_a_message_is_handed_out_alone(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str, group: str
) -> None:
    for number, body in enumerate(MESSAGES):
        producer.send(orders, body, queue_id=0, sharding_key=f"customer {number}")
    together = consumer.receive(orders)
    let_deliveries_expire(broker, orders, group)
    eventually(lambda: in_flight(broker, orders, group) == 0)

    apart = list[list[Delivery]]()
    while len(apart) < len(MESSAGES):
        received = eventually(partial(consumer.receive, orders))
        consumer.ack(received)
        apart.append(list(received))

    assert bodies(together) == MESSAGES
    assert [(len(received), received[0].delivery_attempt) for received in apart] == [(1, 2)] * len(MESSAGES)
    assert sorted(received[0].body for received in apart) == sorted(MESSAGES)


@pytest.mark.parametrize("kind", ["plain", "fair"])
def test_what_is_received_first_is_together_behind_what_comes_again(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str, group: str
) -> None:
    sent = [producer.send(orders, body, queue_id=0, sharding_key="a") for body in MESSAGES[:3]]
    consumer.nack(consumer.receive(orders))
    for body in MESSAGES[3:]:
        producer.send(orders, body, queue_id=0, sharding_key="a")

    sizes = list[int]()
    while sum(sizes) < len(MESSAGES):
        received = eventually(partial(consumer.receive, orders))
        consumer.ack(received)
        sizes.append(len(received))

    assert sizes == [1] * len(sent) + [len(MESSAGES) - len(sent)]


@pytest.mark.parametrize("kind", ["plain", "fair"])
def test_receives_at_once_share_what_comes_again_and_what_is_new(
    producer: Producer, consumer: Consumer, orders: str, group: str
) -> None:
    """Their requests lie in one batch, or in several: none has a message beside one that comes again."""
    for number in range(6):
        producer.send(orders, b"again %d" % number, queue_id=0)
    consumer.nack(consumer.receive(orders))
    for number in range(20):
        producer.send(orders, b"new %d" % number, queue_id=number % 4)

    found = list[list[bytes]]()
    while sum(map(len, found)) < 26:
        with ThreadPoolExecutor(8) as pool:
            found += pool.map(bodies, pool.map(lambda _: consumer.receive(orders, max_messages=4), range(8)))

    assert sorted(body for received in found for body in received) == sorted(
        [b"again %d" % number for number in range(6)] + [b"new %d" % number for number in range(20)]
    )
    assert all(len(received) == 1 for received in found if any(body.startswith(b"again") for body in received))


@EACH_KIND
def test_what_is_given_back_unbegun_comes_again_and_counts_no_attempt(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str, group: str
) -> None:
    for number, body in enumerate(MESSAGES):
        producer.send(orders, body, queue_id=0, sharding_key=f"customer {number}")
    before = consumer.receive(orders)

    returned = consumer.give_back(before)
    again = list[Delivery]()
    while len(again) < len(MESSAGES):
        received = eventually(partial(consumer.receive, orders))
        consumer.ack(received)
        again += received
    refused = wire.post(
        f"/v1/consumer-groups/{group}/return", {"receipt_handles": [before[0].receipt_handle]}
    ).document["results"]

    assert {one.status for one in returned} == {200}
    assert sorted((one.body, one.delivery_attempt) for one in again) == sorted((body, 1) for body in MESSAGES)
    assert [(one["status"], one["code"]) for one in refused] == [(410, "receipt_expired")]


def test_a_delivery_says_whether_the_last_one_ended_without_a_reason(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "table", "delay_seconds": [0]})
    producer.send(orders, b"order 1")

    found = list[tuple[int, bool]]()
    for number in range(4):
        [delivery] = eventually(partial(consumer.receive, orders))
        found.append((delivery.delivery_attempt, delivery.alone))
        if number == 1:
            consumer.nack([delivery], reason="no stock")
        else:
            let_deliveries_expire(broker, orders, consumer.group)

    assert found == [(1, False), (2, True), (3, False), (4, True)]
