"""Ordered groups: one batch of a queue at a time, and a message that fails holds up what must not overtake it."""

import json
from functools import partial

import psycopg
import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire

NEVER = 3600.0


@pytest.fixture
def consumer(broker: RunningBroker, consumer: Consumer) -> Consumer:
    """A consumer of an ordered group, which retries twice and at once."""
    Admin(broker.client()).create_consumer_group(
        consumer.group, ordered=True, max_reconsume_times=2, retry_policy={"kind": "table", "delay_seconds": [0]}
    )
    return consumer


def send(producer: Producer, topic: str, *steps: str, queue_id: int | None = 0) -> None:
    """Sends messages in order: `a1` is the first of the key `a`, and `1` has no key."""
    for step in steps:
        key = step.rstrip("0123456789") or None
        producer.send(topic, step.encode(), queue_id=queue_id, sharding_key=key)


def the_delay_passes(broker: RunningBroker, consumer: Consumer, topic: str) -> None:
    """Lets the delay of all that the group holds be over."""
    held = "UPDATE receipt AS r SET expires_at = now() FROM consumer_group AS g WHERE g.id = r.group_id AND g.name = %s"
    with psycopg.connect(broker.database_of(topic), autocommit=True) as connection:
        connection.execute(held, [consumer.group])


def test_the_next_batch_of_a_queue_comes_when_the_last_is_acked_whole(
    producer: Producer, consumer: Consumer, distant_consumer: Consumer, orders: str
) -> None:
    send(producer, orders, "1", "2", "3")
    first, second = consumer.receive(orders, max_messages=2)

    assert distant_consumer.receive(orders) == []
    consumer.ack([second])
    assert distant_consumer.receive(orders) == []
    consumer.ack([first])
    assert bodies(distant_consumer.receive(orders)) == [b"3"]


def test_queues_do_not_wait_for_each_other(producer: Producer, consumer: Consumer, orders: str) -> None:
    for queue_id in range(3):
        send(producer, orders, f"{queue_id}", queue_id=queue_id)

    found = [bodies(consumer.receive(orders)) for _ in range(4)]

    assert sorted(found) == [[], [b"0"], [b"1"], [b"2"]]


def test_a_failing_message_without_a_key_holds_up_its_queue(
    producer: Producer, consumer: Consumer, orders: str
) -> None:
    send(producer, orders, "1", "a1")
    consumer.nack(consumer.receive(orders, max_messages=1), delay_seconds=NEVER)
    send(producer, orders, "2", queue_id=1)

    assert bodies(consumer.receive(orders)) == [b"2"]
    assert consumer.receive(orders) == []


def test_a_failing_message_holds_up_its_key_and_no_other(producer: Producer, consumer: Consumer, orders: str) -> None:
    send(producer, orders, "a1", "b1", "a2", "b2", "a3")
    consumer.nack(consumer.receive(orders, max_messages=1), delay_seconds=NEVER)

    others = consumer.receive(orders)
    consumer.ack(others)

    assert bodies(others) == [b"b1", b"b2"]
    assert consumer.receive(orders) == []


def test_what_was_parked_comes_in_its_order_after_the_message_that_failed(
    producer: Producer, consumer: Consumer, orders: str
) -> None:
    send(producer, orders, "a1", "b1", "a2", "a3")
    consumer.nack(consumer.receive(orders, max_messages=1), delay_seconds=1)
    consumer.ack(consumer.receive(orders))

    again = eventually(partial(consumer.receive, orders))
    consumer.ack(again)

    assert [(delivery.body, delivery.delivery_attempt) for delivery in again] == [(b"a1", 2)]
    assert bodies(consumer.receive(orders)) == [b"a2", b"a3"]


def test_other_keys_go_on_however_many_messages_wait_behind_one_that_failed(
    broker: RunningBroker,
    wire: Wire,
    producer: Producer,
    consumer: Consumer,
    distant_consumer: Consumer,
    orders: str,
) -> None:
    send(producer, orders, "a0")
    [failed] = consumer.receive(orders)
    consumer.nack([failed], delay_seconds=NEVER)
    stuck = {"op": "send", "topic": orders, "queue_id": 0, "sharding_key": "a"}
    for start in (1, 601):
        wire.bulk(*({**stuck, "body": f"a{number}"} for number in range(start, start + 600)))
    send(producer, orders, "b1", "b2")

    for web in (consumer, distant_consumer):
        others = web.receive(orders, max_messages=1, wait_seconds=10)
        assert bodies(others) == [b"b1" if web is consumer else b"b2"]
        web.ack(others)

    the_delay_passes(broker, consumer, orders)
    received: list[bytes] = []
    while len(received) < 1201:
        batch = consumer.receive(orders, wait_seconds=20)
        assert batch, received[-1:]
        assert distant_consumer.receive(orders) == []
        received += bodies(batch)
        consumer.ack(batch)
    assert received == [f"a{number}".encode() for number in range(1201)]


def test_a_message_behind_many_that_a_filter_passes_over_is_found_by_one_receive(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    passed_over = {"op": "send", "topic": orders, "queue_id": 0, "tags": "draft"}
    wire.bulk(*({**passed_over, "body": f"draft {number}"} for number in range(500)))
    producer.send(orders, b"order 1", queue_id=0, tags="paid")

    found = consumer.receive(orders, filter="paid", max_messages=1, wait_seconds=10)

    assert bodies(found) == [b"order 1"]


def test_a_lost_batch_comes_again_one_by_one_and_in_order(producer: Producer, consumer: Consumer, orders: str) -> None:
    send(producer, orders, "a1", "b1", "a2")
    consumer.receive(orders, invisible_seconds=1)

    for body in (b"a1", b"b1", b"a2"):
        again = eventually(partial(consumer.receive, orders))
        assert [(delivery.body, delivery.delivery_attempt) for delivery in again] == [(body, 2)]
        consumer.ack(again)


def test_a_dead_letter_no_longer_holds_up_its_key(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    send(producer, orders, "a1", "a2")
    for attempt in (1, 2, 3):
        [delivery] = eventually(partial(consumer.receive, orders, max_messages=1))
        assert (delivery.body, delivery.delivery_attempt) == (b"a1", attempt)
        consumer.nack([delivery])

    assert bodies(consumer.receive(orders)) == [b"a2"]
    [letter] = wire.get(f"/v1/dead-letters/{consumer.group}").document["results"]
    assert letter["message"]["body"] == "a1"


def test_a_waiting_consumer_has_the_next_batch_as_soon_as_the_last_is_acked(
    producer: Producer, consumer: Consumer, distant_consumer: Consumer, orders: str
) -> None:
    send(producer, orders, "1", "2")
    deliveries = consumer.receive(orders, max_messages=1)
    assert distant_consumer.receive(orders, wait_seconds=0.2) == []

    consumer.ack(deliveries)

    assert bodies(distant_consumer.receive(orders, wait_seconds=20)) == [b"2"]


def test_a_group_stays_ordered_while_messages_wait_in_order(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    send(producer, orders, "a1")
    consumer.nack(consumer.receive(orders), delay_seconds=NEVER)

    answer = wire.call("PUT", f"/v1/consumer-groups/{consumer.group}", b'{"ordered": false}')

    assert answer.problem["detail"] == (
        f"ordered of {consumer.group} cannot change while messages wait in order: reset the offsets of the group first."
    )


def test_what_fails_right_after_a_group_is_ordered_no_more_comes_again(
    wire: Wire, producer: Producer, consumer: Consumer, distant_consumer: Consumer, orders: str
) -> None:
    """Also when the nack reaches a process that has cached the group as ordered."""
    send(producer, orders, "a1")
    deliveries = distant_consumer.receive(orders)

    wire.call("PUT", f"/v1/consumer-groups/{consumer.group}", b'{"ordered": false}')
    distant_consumer.nack(deliveries, delay_seconds=0)

    assert bodies(eventually(partial(consumer.receive, orders))) == [b"a1"]


def test_a_reset_lets_go_of_what_was_held(wire: Wire, producer: Producer, consumer: Consumer, orders: str) -> None:
    send(producer, orders, "a1", "a2")
    consumer.nack(consumer.receive(orders, max_messages=1), delay_seconds=NEVER)
    assert consumer.receive(orders) == []

    place = json.dumps({"topic": orders, "to": 0, "queue_id": 0}).encode()
    assert wire.call("PUT", f"/v1/consumer-groups/{consumer.group}/offsets", place).status == 200

    assert [(one.body, one.delivery_attempt) for one in consumer.receive(orders)] == [(b"a1", 1), (b"a2", 1)]


def test_a_batch_in_flight_after_a_reset_is_respected_by_a_process_that_had_come_further(
    broker: RunningBroker, producer: Producer, consumer: Consumer, distant_consumer: Consumer, orders: str
) -> None:
    send(producer, orders, *(str(number) for number in range(6)))
    for _ in range(3):
        consumer.ack(consumer.receive(orders, max_messages=2))
    place = json.dumps({"topic": orders, "to": 0, "queue_id": 0}).encode()
    broker.wire(1).call("PUT", f"/v1/consumer-groups/{consumer.group}/offsets", place)
    for _ in range(2):
        again = distant_consumer.receive(orders, max_messages=2)
        distant_consumer.ack(again[1:])

        assert consumer.receive(orders) == []
        distant_consumer.ack(again[:1])

    assert bodies(consumer.receive(orders)) == [b"4", b"5"]
