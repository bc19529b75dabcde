"""Ack and send as one: what a consumer made of its deliveries is sent with their ack, or neither is done."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from mqbroker_client import Admin, Broker, Consumer, Delivery, Message, Producer
from mqbroker_client.contrib.testing import MemoryBroker
from mqbroker_client.core import errors
from mqbroker_client.core.ids import uuid7

from tests.broker import characters
from tests.broker.characters import bodies
from tests.broker.proxy import LossyProxy
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import received_until_empty
from tests.broker.wire import Wire


def ack_path(consumer: Consumer) -> str:
    """The path of the ack."""
    return f"/v1/consumer-groups/{consumer.group}/ack"


def test_a_delivery_is_acked_and_what_was_made_of_it_is_sent(
    producer: Producer, consumer: Consumer, later: Consumer, orders: str, paid: str
) -> None:
    producer.send(orders, b"order 1")
    [delivery] = consumer.receive(orders, invisible_seconds=10)

    sent = consumer.forward([delivery], [Message(paid, b"paid 1", tags="eu"), Message(paid, b"paid 1 again")])

    assert [one.topic for one in sent] == [paid, paid]
    assert [each.status for each in consumer.ack([delivery])] == [410]
    assert sorted(bodies(later.receive(paid))) == [b"paid 1", b"paid 1 again"]


def test_a_receipt_that_proves_no_delivery_refuses_the_messages_and_the_other_acks(
    wire: Wire, producer: Producer, consumer: Consumer, later: Consumer, orders: str, paid: str
) -> None:
    Admin(producer.broker).create_topic(paid)
    for number in range(2):
        producer.send(orders, b"order %d" % number)
    first, second = consumer.receive(orders, max_messages=2)
    consumer.ack([first])

    handles = [first.receipt_handle, second.receipt_handle]
    answer = wire.post(ack_path(consumer), {"receipt_handles": handles, "messages": [{"topic": paid, "body": "x"}]})

    assert (answer.status, answer.problem["code"]) == (410, "receipt_expired")
    assert later.receive(paid) == []
    assert [each.status for each in consumer.ack([second])] == [200]


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        ({"body": "x", "tags": " "}, 422, "message_illegal"),
        ({"body": "x", "delay_seconds": 1e9}, 422, "delay_illegal"),
        ({"body": "x", "queue_id": 99}, 422, "queue_illegal"),
        ({"body": "another body", "message_id": "stored"}, 409, "message_id_reused"),
        (None, 422, "message_illegal"),
    ],
)
def test_a_message_that_is_refused_leaves_its_deliveries_unacked(
    wire: Wire,
    producer: Producer,
    consumer: Consumer,
    orders: str,
    paid: str,
    message: dict[str, object] | None,
    status: int,
    code: str,
) -> None:
    stored = producer.send(paid, b"stored before")
    producer.send(orders, b"order 1")
    [delivery] = consumer.receive(orders)
    if message is not None and "message_id" in message:
        message = message | {"message_id": str(stored.message_id)}
    # None: it has no message at all.
    messages = [] if message is None else [{"topic": paid, "body": "good"}, {"topic": paid, **message}]

    answer = wire.post(ack_path(consumer), {"receipt_handles": [delivery.receipt_handle], "messages": messages})

    assert (answer.status, answer.problem["code"]) == (status, code)
    assert bodies(Consumer(producer.broker, characters.name("readers")).receive(paid)) == [b"stored before"]
    assert [each.status for each in consumer.ack([delivery])] == [200]


def test_what_was_made_of_a_delivery_may_be_as_large_as_any_message(
    broker: RunningBroker, producer: Producer, consumer: Consumer, later: Consumer, orders: str, paid: str
) -> None:
    producer.send(orders, b"order 1")
    [delivery] = consumer.receive(orders)
    body = bytes(range(256)) * (14 * 1024)

    consumer.forward([delivery], [Message(paid, body)])

    assert bodies(later.receive(paid)) == [body]


def test_a_call_whose_answer_was_lost_is_answered_as_at_first(
    broker: RunningBroker, producer: Producer, consumer: Consumer, later: Consumer, orders: str, paid: str
) -> None:
    producer.send(orders, b"order 1")
    [delivery] = consumer.receive(orders)
    messages = [Message(paid, b"paid 1"), Message(paid, b"paid late", delay_seconds=600)]
    with LossyProxy(broker.url) as network, Broker(network.url, API_KEY) as way:
        network.loses_answers = True
        threading.Timer(0.5, lambda: setattr(network, "loses_answers", False)).start()
        sent = Consumer(way, consumer.group).forward([delivery], messages)

    assert [one.duplicate for one in sent] == [True, True]
    assert sent[1].recall_handle is not None
    assert bodies(received_until_empty(later, paid)) == [b"paid 1"]


def test_of_many_callers_with_one_delivery_one_sends(
    broker: RunningBroker, producer: Producer, consumer: Consumer, later: Consumer, orders: str, paid: str
) -> None:
    producer.send(orders, b"order 1")
    producer.send(paid, b"the topic begins")
    [delivery] = consumer.receive(orders)

    def forward(number: int) -> bool:
        try:
            Consumer(broker.client(number % 2), consumer.group).forward([delivery], [Message(paid, b"%d" % number)])
        except errors.ReceiptExpired:
            return False
        return True

    with ThreadPoolExecutor(16) as threads:
        won = [number for number, is_first in enumerate(threads.map(forward, range(16))) if is_first]

    assert len(won) == 1
    assert sorted(bodies(received_until_empty(later, paid))) == [b"%d" % won[0], b"the topic begins"]


def test_deliveries_of_one_receive_are_forwarded_at_the_same_time_each_once(
    broker: RunningBroker, producer: Producer, consumer: Consumer, later: Consumer, orders: str, paid: str
) -> None:
    Admin(producer.broker).create_topic(orders, queues=1)
    producer.send(paid, b"the topic begins")
    producer.send_batch(orders, [Message(orders, b"%d" % number) for number in range(32)])
    taken = consumer.receive(orders, max_messages=32)
    # Every fourth delivery is acked before, so some callers of a batch are refused.
    consumer.ack(taken[::4])

    def forward(delivery: Delivery) -> bytes | None:
        try:
            consumer.forward([delivery], [Message(paid, delivery.body), Message(paid, delivery.body + b" again")])
        except errors.ReceiptExpired:
            return None
        return delivery.body

    with ThreadPoolExecutor(16) as threads:
        done = [body for body in threads.map(forward, taken) if body is not None]

    assert done == [one.body for number, one in enumerate(taken) if number % 4]
    expected = [body + behind for body in done for behind in (b"", b" again")]
    assert sorted(bodies(received_until_empty(later, paid))) == sorted([*expected, b"the topic begins"])
    assert {each.status for each in consumer.ack(taken)} == {410}


def test_of_two_calls_that_share_a_delivery_one_sends(
    broker: RunningBroker, producer: Producer, consumer: Consumer, later: Consumer, orders: str, paid: str
) -> None:
    producer.send(paid, b"the topic begins")
    for _ in range(10):
        producer.send_batch(orders, [Message(orders, b"%d" % number) for number in range(3)])
        taken = consumer.receive(orders, max_messages=3)

        def forward(deliveries: list[Delivery]) -> int:
            try:
                return len(consumer.forward(deliveries, [Message(paid, b"made")]))
            except errors.ReceiptExpired:
                return 0

        with ThreadPoolExecutor(2) as threads:
            assert sum(threads.map(forward, (taken[:2], taken[1:]))) == 1
        consumer.ack(taken)

    assert sorted(bodies(received_until_empty(later, paid))) == [*[b"made"] * 10, b"the topic begins"]


def test_in_a_bulk_each_ack_with_messages_is_done_by_itself(
    wire: Wire, producer: Producer, consumer: Consumer, later: Consumer, orders: str, paid: str
) -> None:
    Admin(producer.broker).create_topic(paid)
    for number in range(3):
        producer.send(orders, b"order %d" % number)
    taken = consumer.receive(orders, max_messages=3)
    consumer.ack(taken[1:2])
    id_ = str(uuid7())

    def operation(delivery: Delivery, **message: object) -> dict[str, object]:
        made = {"topic": paid, "body": delivery.body.decode(), **message}
        return {"op": "ack", "group": consumer.group, "receipt_handles": [delivery.receipt_handle], "messages": [made]}

    results = wire.bulk(
        operation(taken[0]),
        operation(taken[1]),
        operation(taken[2], message_id=id_),
        {"op": "send", "topic": paid, "body": taken[2].body.decode(), "message_id": id_},
    )

    assert [one["status"] for one in results][:2] == [200, 410]
    assert results[2]["status"] == 409 or results[2]["messages"][0]["message_id"] == id_
    found = bodies(received_until_empty(later, paid))
    assert sorted(set(found)) == sorted(found) == sorted({taken[0].body, taken[2].body})


def test_who_may_not_produce_to_the_topic_acks_nothing(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, orders: str, paid: str
) -> None:
    producer.send(orders, b"order 1")
    [delivery] = consumer.receive(orders)
    key = wire.post("/v1/api-keys", {"name": characters.name("reader"), "scopes": [f"consume:{consumer.group}"]})

    with Broker(broker.url, key.document["key"]) as client, pytest.raises(errors.NoPermission):
        Consumer(client, consumer.group).forward([delivery], [Message(paid, b"x")])

    assert [each.status for each in consumer.ack([delivery])] == [200]


def test_keyed_messages_keep_their_order_beside_plain_sends(
    producer: Producer, consumer: Consumer, later: Consumer, orders: str, paid: str
) -> None:
    Admin(producer.broker).create_topic(paid, queues=1)
    for number in range(20):
        producer.send(orders, b"%d" % number)
        [delivery] = consumer.receive(orders)
        consumer.forward([delivery], [Message(paid, b"%d forwarded" % number, sharding_key="one")])
        producer.send(paid, b"%d sent" % number, sharding_key="one")

    found = bodies(received_until_empty(later, paid))
    assert found == [b"%d %s" % (number, how) for number in range(20) for how in (b"forwarded", b"sent")]


@pytest.mark.parametrize("is_real", [True, False])
def test_the_broker_for_tests_does_what_the_real_one_does(broker: RunningBroker, orders: str, is_real: bool) -> None:
    both = broker.client() if is_real else MemoryBroker()
    producer, consumer, paid = Producer(both, orders), Consumer(both, orders), f"{orders}-paid"
    for body in (b"1", b"2"):
        producer.send(orders, body)
    first, second = consumer.receive(orders)
    consumer.ack([first])
    messages = [Message(paid, b"paid")]

    with pytest.raises(errors.ReceiptExpired):
        consumer.forward([first, second], messages)
    [sent] = consumer.forward([second], messages)
    [again] = consumer.forward([second], messages)

    assert (sent.duplicate, again.duplicate) == (False, True)
    assert bodies(Consumer(both, paid).receive(paid)) == [b"paid"]
