"""The broker of `mqbroker_client.testing` does what the real one does: the same tests run on both."""

import threading
from uuid import UUID

import pytest
from mqbroker_client import (
    Broker,
    CheckPoller,
    Consumer,
    HalfMessage,
    LocalTransactionState,
    Message,
    Producer,
    errors,
)
from mqbroker_client.testing import MemoryBroker

from tests.broker.characters import bodies
from tests.broker.running import RunningBroker

pytest_plugins = ["mqbroker_client.testing.fixtures"]


@pytest.fixture(params=["memory", "real"])
def both(request: pytest.FixtureRequest) -> Broker:
    """A broker within the process, and a real one."""
    if request.param == "memory":
        return MemoryBroker()
    running: RunningBroker = request.getfixturevalue("broker")
    return running.client()


def test_a_half_message_is_invisible_until_it_is_committed(both: Broker, orders: str) -> None:
    producer, consumer = Producer(both, orders), Consumer(both, orders)
    transaction = producer.begin_messages([Message(orders, b"1", keys="abc"), Message(orders, b"2")])
    assert consumer.receive(orders) == []
    assert producer.transaction(transaction.transaction_id)["state"] == "PREPARED"

    assert transaction.commit().state == "COMMITTED"

    received = consumer.receive(orders)
    assert sorted(bodies(received)) == [b"1", b"2"]
    assert {delivery.message.transaction_id for delivery in received} == {transaction.transaction_id}
    assert ("abc",) in [delivery.message.keys for delivery in received]


def test_the_first_decision_wins(both: Broker, orders: str) -> None:
    transaction = Producer(both, orders).begin(orders, b"1")
    assert transaction.unknown().state == "PREPARED"
    first = transaction.rollback()
    assert transaction.rollback() == first

    with pytest.raises(errors.TransactionEnded):
        transaction.commit()
    with pytest.raises(errors.ProducerGroupWrong):
        Producer(both, "another").end(transaction.transaction_id, LocalTransactionState.ROLLBACK)
    with pytest.raises(errors.TransactionNotFound):
        Producer(both, orders).transaction(UUID(int=1))
    assert Consumer(both, orders).receive(orders) == []


def test_the_same_again_stores_nothing(both: Broker, orders: str) -> None:
    producer = Producer(both, orders)
    message = Message(orders, b"\xff\x00")
    first, again = producer.send_message(message), producer.send_message(message)
    begun = producer.begin(orders, b"half")
    repeated = producer.begin_messages(begun.messages, transaction_id=begun.transaction_id)

    assert (first.duplicate, again.duplicate, repeated.duplicate) == (False, True, True)
    assert bodies(Consumer(both, orders).receive(orders)) == [b"\xff\x00"]
    with pytest.raises(errors.MessageIdReused):
        producer.send(orders, b"other", message_id=UUID(str(message.message_id)))


def test_deliveries_are_hidden_acked_extended_and_handed_out_again(both: Broker, orders: str) -> None:
    consumer = Consumer(both, orders)
    Producer(both, orders).send(orders, b"1")
    [delivery] = consumer.receive(orders)
    assert delivery.delivery_attempt == 1
    assert consumer.receive(orders) == []
    assert [settled.status for settled in consumer.extend([delivery], invisible_seconds=30)] == [200]
    assert [settled.status for settled in consumer.nack([delivery], delay_seconds=0)] == [200]

    [again] = consumer.receive(orders, wait_seconds=5)
    assert (again.delivery_attempt, again.message.reconsume_times) == (2, 1)
    assert [settled.status for settled in consumer.ack([again, delivery])] == [200, 410]
    assert consumer.receive(orders) == []
    assert bodies(Consumer(both, f"{orders}-others").receive(orders)) == [b"1"]


def test_a_batch_is_in_one_queue_and_a_key_too(both: Broker, orders: str) -> None:
    producer = Producer(both, orders)
    sent = producer.send_batch(orders, [Message(orders, b"%d" % number) for number in range(3)])
    keyed = [producer.send(orders, b"x", sharding_key="customer-1") for _ in range(3)]

    first = sent[0].queue_offset or 0
    assert [(one.queue_id, one.queue_offset) for one in sent] == [(sent[0].queue_id, first + n) for n in range(3)]
    assert len({one.queue_id for one in keyed}) == 1
    with pytest.raises(errors.BatchIllegal):
        producer.send_batch(orders, [])
    with pytest.raises(errors.TopicIllegal):
        producer.send("no topic", b"1")


def test_a_delayed_message_is_not_there_yet(both: Broker, orders: str) -> None:
    producer = Producer(both, orders)

    assert producer.send(orders, b"1", delay_seconds=100).queue_offset is None
    assert Consumer(both, orders).receive(orders) == []


def test_a_long_poll_ends_with_the_message(both: Broker, orders: str) -> None:
    producer, consumer = Producer(both, orders), Consumer(both, orders)
    consumer.receive(orders)
    received: list[bytes] = []
    waiting = threading.Thread(target=lambda: received.extend(bodies(consumer.receive(orders, wait_seconds=20))))
    waiting.start()
    producer.send(orders, b"1")
    waiting.join(10)

    assert received == [b"1"]


def test_time_passes_when_a_test_says_so(mqbroker: MemoryBroker) -> None:
    producer, consumer = Producer(mqbroker, "shop"), Consumer(mqbroker, "coupons")
    producer.send("orders", b"delayed", delay_level=18)
    mqbroker.advance(7_200)
    [delivery] = consumer.receive("orders", invisible_seconds=60)
    mqbroker.advance(60)
    assert [settled.status for settled in consumer.ack([delivery])] == [410]
    for _ in range(16):
        consumer.nack(consumer.receive("orders"))
        mqbroker.advance(7_200)

    assert consumer.receive("orders") == []
    assert bodies(Consumer(mqbroker, "repairs").receive("%DLQ%coupons")) == [b"delayed"]


def test_checks_are_due_after_the_immunity(mqbroker: MemoryBroker) -> None:
    def check(half: HalfMessage) -> LocalTransactionState:
        return LocalTransactionState.COMMIT if half.body == b"paid" else LocalTransactionState.UNKNOWN

    producer = Producer(mqbroker, "shop")
    paid, unpaid = producer.begin("orders", b"paid"), producer.begin("orders", b"unpaid")
    poller = CheckPoller(producer, check, wait_seconds=0)
    assert poller.answer_due() == 0
    mqbroker.advance(6)

    assert poller.answer_due() == 2
    states = [producer.transaction(each.transaction_id)["state"] for each in (paid, unpaid)]
    assert states == ["COMMITTED", "PREPARED"]


def test_what_it_does_not_know_it_refuses(mqbroker: MemoryBroker) -> None:
    with pytest.raises(NotImplementedError, match="the broker of tests has no POST /v1/messages/recall"):
        Producer(mqbroker, "shop").recall("handle")
    with pytest.raises(NotImplementedError, match="the broker of tests has no filters"):
        Consumer(mqbroker, "coupons").receive("orders", filter="paid")
