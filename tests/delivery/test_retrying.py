"""What waits for its next attempt is counted by group and topic, in the group's document and in the metrics."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker import metrics
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import received_until_empty
from tests.broker.wire import Document, Wire

HOUR = 3600.0
# How a message comes to wait: its group, and the delay of its nack; None: by the group's policy.
WAYS: Mapping[str, tuple[dict[str, Any], float | None]] = {
    "by a timer": ({}, HOUR),
    "by a policy": ({"retry_policy": {"kind": "table", "delay_seconds": [HOUR]}}, None),
    "in order": ({"ordered": True}, HOUR),
    "by turns": ({"fair_by": "sharding_key"}, HOUR),
    "by turns in order": ({"fair_by": "sharding_key", "ordered": True}, HOUR),
}


def retrying(wire: Wire, group: str) -> Document:
    found: Document = wire.get(f"/v1/consumer-groups/{group}").document["retrying"]
    return found


@pytest.mark.parametrize("way", WAYS)
def test_what_waits_for_its_next_attempt_is_counted_by_topic_and_in_all(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, orders: str, coupons: str, way: str
) -> None:
    settings, delay_seconds = WAYS[way]
    Admin(broker.client()).create_consumer_group(consumer.group, **settings)
    before = datetime.now(UTC)
    for topic, count in ((orders, 3), (coupons, 2)):
        for number in range(count):
            producer.send(topic, b"%d" % number, queue_id=0, sharding_key=f"customer {number}")
        consumer.nack(consumer.receive(topic), delay_seconds=delay_seconds)

    found = retrying(wire, consumer.group)
    series = metrics.read(broker.url)

    by_topic = {one["topic"]: one["messages"] for one in found["topics"]}
    assert (found["messages"], by_topic) == (5, {orders: 3, coupons: 2})
    assert abs((datetime.fromisoformat(found["oldest_at"]) - before).total_seconds()) < 600
    assert 3000 < (datetime.fromisoformat(found["next_at"]) - before).total_seconds() < 4200
    for topic, messages in by_topic.items():
        assert series["mqbroker_consumer_retrying", consumer.group, topic] == messages
        assert 0 <= series["mqbroker_oldest_retrying_seconds", consumer.group, topic] < 600


def test_what_waits_at_a_delay_level_is_counted_until_it_comes_again(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    consumer.nack(consumer.receive(orders))

    waited = eventually(partial(in_all, wire, consumer.group))
    consumer.ack(eventually(partial(consumer.receive, orders)))

    assert waited == 1
    assert retrying(wire, consumer.group) == {"messages": 0, "oldest_at": None, "next_at": None, "topics": []}
    assert metrics.read(broker.url).get(("mqbroker_consumer_retrying", consumer.group, orders), 0) == 0


def in_all(wire: Wire, group: str) -> int:
    return int(retrying(wire, group)["messages"])


def test_what_is_parked_behind_a_message_that_failed_is_lag(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, ordered=True)
    producer.send(orders, b"a1", queue_id=0, sharding_key="a")
    consumer.nack(consumer.receive(orders), delay_seconds=HOUR)
    for body in (b"a2", b"a3"):
        producer.send(orders, body, queue_id=0, sharding_key="a")
    # They are read, and parked.
    assert consumer.receive(orders) == []

    document = wire.get(f"/v1/consumer-groups/{consumer.group}").document

    assert sum(queue["lag"] for queue in document["lag"]) == 2
    assert wire.get(f"/v1/consumer-groups/{consumer.group}/offsets").document["lag"] == 2
    assert document["retrying"]["messages"] == 1


def test_a_topic_that_is_made_anew_is_lag_of_the_groups_that_have_read_it(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"of the first one")
    consumer.ack(consumer.receive(orders))
    wire.call("DELETE", f"/v1/topics/{orders}", b"")
    Admin(broker.client()).create_topic(orders, queues=2)
    for number in range(7):
        producer.send(orders, b"%d" % number, queue_id=number % 2)

    path = f"/v1/consumer-groups/{consumer.group}"
    waiting = {queue["topic"]: queue["oldest_unacked_at"] for queue in wire.get(path).document["lag"] if queue["lag"]}
    by_offsets = wire.get(f"{path}/offsets").document["lag"]
    measured = metrics.read(broker.url)["mqbroker_consumer_lag", consumer.group, orders]
    received = received_until_empty(consumer, orders)

    assert list(waiting) == [orders]
    assert waiting[orders] is not None
    assert (by_offsets, measured, len(received)) == (7, 7, 7)
    assert wire.get(f"{path}/offsets").document["lag"] == 0
