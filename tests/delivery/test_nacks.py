"""Promises of a nack's reason: kept with the message's trace and its dead letter, and with the retry or not at all."""

import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire

NO_STOCK = "no stock for order 1: “42 €” ordered"


def nacks(wire: Wire, message_id: object) -> list[Document]:
    """The nacks in a message's trace, in the order of time."""
    events: list[Document] = wire.get(f"/v1/messages/{message_id}/trace").document["events"]
    return [event for event in events if event["event"] == "nack"]


@pytest.mark.parametrize("ordered", [False, True])
def test_each_reason_is_in_the_trace_and_the_last_with_the_dead_letter(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, orders: str, ordered: bool
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, ordered=ordered, max_reconsume_times=1)
    sent = producer.send(orders, b"order 1", queue_id=0)

    consumer.nack(consumer.receive(orders), delay_seconds=0, reason="the bank is away")
    consumer.nack(consumer.receive(orders, wait_seconds=10), reason=NO_STOCK)

    found = nacks(wire, sent.message_id)
    assert [(one["group"], one["delivery_attempt"], one["reason"]) for one in found] == [
        (consumer.group, 1, "the bank is away"),
        (consumer.group, 2, NO_STOCK),
    ]
    [letter] = wire.get(f"/v1/dead-letters/{consumer.group}").document["results"]
    assert letter["reason"] == NO_STOCK


def test_a_nack_without_a_reason_leaves_none(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    sent = [producer.send(orders, b"order 1", queue_id=0) for _ in range(2)]
    first, second = consumer.receive(orders)

    consumer.nack([first])
    consumer.nack([second], reason=" \n\0")

    assert [nacks(wire, one.message_id) for one in sent] == [[], []]
    letters = wire.get(f"/v1/dead-letters/{consumer.group}").document["results"]
    assert [letter["reason"] for letter in letters] == [None, None]


def test_a_reason_of_more_than_1000_characters_is_refused_and_nothing_is_given_back(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    sent = producer.send(orders, b"order 1")
    [delivery] = consumer.receive(orders)
    asked = {"receipt_handles": [delivery.receipt_handle]}
    path = f"/v1/consumer-groups/{consumer.group}/nack"

    refused = wire.post(path, {**asked, "reason": "x" * 1001})
    taken = wire.post(path, {**asked, "reason": "é" * 997 + "\n\0\x1b", "delay_seconds": 60})

    assert (refused.status, refused.document["code"]) == (422, "message_illegal")
    assert refused.document["detail"] == "reason has 1001 characters: give 1000 or fewer."
    assert taken.document["results"][0]["status"] == 200
    assert [one["reason"] for one in nacks(wire, sent.message_id)] == ["é" * 997 + "\n\ufffd\ufffd"]


def test_a_reason_of_an_expired_receipt_is_not_kept(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    sent = producer.send(orders, b"order 1")
    deliveries = consumer.receive(orders)
    consumer.ack(deliveries)

    [settled] = consumer.nack(deliveries, reason="too late")

    assert settled.status == 410
    assert nacks(wire, sent.message_id) == []
