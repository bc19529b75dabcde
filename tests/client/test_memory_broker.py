"""The broker of `mqbroker_client.contrib.testing` does what the real one does: the same tests run on both."""

import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest
from mqbroker_client import (
    Admin,
    Broker,
    CheckPoller,
    Consumer,
    HalfMessage,
    LocalTransactionState,
    Message,
    Producer,
)
from mqbroker_client.contrib.sqlalchemy import Outbox
from mqbroker_client.contrib.testing import MemoryBroker
from mqbroker_client.core import errors
from sqlalchemy import create_engine
from sqlalchemy.orm import sessionmaker

from tests.broker.characters import bodies
from tests.broker.running import RunningBroker

pytest_plugins = ["mqbroker_client.contrib.testing.fixtures"]


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


def test_an_end_that_is_not_waited_for_raises_nothing(both: Broker, orders: str) -> None:
    transaction = Producer(both, orders).begin(orders, b"1")
    transaction.rollback()

    Producer(both, orders).end(transaction.transaction_id, LocalTransactionState.COMMIT, wait=False)
    both.close()

    assert Producer(both, orders).transaction(transaction.transaction_id)["state"] == "ROLLED_BACK"


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


def test_a_chain_of_receives_acks_each_message_and_leaves_none(both: Broker, orders: str) -> None:
    producer, consumer = Producer(both, orders), Consumer(both, orders)
    for number in range(3):
        producer.send(orders, b"%d" % number, queue_id=0)

    done: list[bytes] = []
    received = consumer.receive(orders, max_messages=1)
    while received:
        done += bodies(received)
        received = consumer.receive(orders, max_messages=1, ack=received)
        assert [settled.status for settled in received.acked] == [200]

    assert done == [b"0", b"1", b"2"]
    assert consumer.ack([]) == []


@pytest.fixture
def in_order(both: Broker, orders: str) -> Consumer:
    """A consumer of an ordered group."""
    Admin(both).create_consumer_group(orders, ordered=True)
    return Consumer(both, orders)


def test_a_queue_of_an_ordered_group_has_one_batch_in_flight(both: Broker, orders: str, in_order: Consumer) -> None:
    producer = Producer(both, orders)
    for body in (b"1", b"2", b"3"):
        producer.send(orders, body, queue_id=0)
    producer.send(orders, b"other", queue_id=1)
    received = {b"".join(bodies(in_order.receive(orders, max_messages=2))) for _ in range(3)}
    assert received == {b"12", b"other", b""}
    assert in_order.is_ordered()


def test_the_next_batch_of_a_queue_comes_when_the_last_is_acked_whole(
    both: Broker, orders: str, in_order: Consumer
) -> None:
    for body in (b"1", b"2", b"3"):
        Producer(both, orders).send(orders, body, queue_id=0)
    first, second = in_order.receive(orders, max_messages=2)

    in_order.ack([second])
    assert in_order.receive(orders) == []
    in_order.ack([first])
    assert bodies(in_order.receive(orders)) == [b"3"]


def test_a_failed_message_holds_up_its_key_and_comes_first_again(both: Broker, orders: str, in_order: Consumer) -> None:
    producer = Producer(both, orders)
    for body in (b"a1", b"b1", b"a2", b"b2", b"a3", b"without a key"):
        producer.send(orders, body, queue_id=0, sharding_key=body[:1].decode() if len(body) == 2 else None)
    in_order.nack(in_order.receive(orders, max_messages=1), delay_seconds=2)
    others = in_order.receive(orders)
    in_order.ack(others)
    again = in_order.receive(orders, wait_seconds=20)
    in_order.ack(again)

    assert bodies(others) == [b"b1", b"b2", b"without a key"]
    assert [(delivery.body, delivery.delivery_attempt) for delivery in again] == [(b"a1", 2)]
    assert bodies(in_order.receive(orders)) == [b"a2", b"a3"]


def test_a_failed_message_without_a_key_holds_up_its_queue(both: Broker, orders: str, in_order: Consumer) -> None:
    producer = Producer(both, orders)
    for body in (b"1", b"2"):
        producer.send(orders, body, queue_id=0, sharding_key="a" if body == b"2" else None)
    in_order.nack(in_order.receive(orders, max_messages=1), delay_seconds=3600)
    producer.send(orders, b"3", queue_id=1)

    assert bodies(in_order.receive(orders)) == [b"3"]
    assert in_order.receive(orders) == []


def test_a_topic_has_the_queues_that_its_program_made(both: Broker, orders: str) -> None:
    admin, producer = Admin(both), Producer(both, orders)
    assert [admin.create_topic(orders, queues=queues)["queues"] for queues in (1, 2)] == [1, 2]

    assert {producer.send(orders, b"1").queue_id for _ in range(8)} == {0, 1}
    with pytest.raises(errors.QueueIllegal):
        admin.create_topic(orders, queues=1)
    with pytest.raises(errors.QueueIllegal):
        producer.begin(orders, b"1", queue_id=2)


def test_a_consumer_runs_and_stops(both: Broker, orders: str) -> None:
    Producer(both, orders).send(orders, b"1")
    handled, stop = queue.SimpleQueue[bytes](), threading.Event()
    consumer = Consumer(both, orders)
    running = threading.Thread(
        target=consumer.run, args=(orders, lambda delivery: handled.put(delivery.body)), kwargs={"stop": stop}
    )
    running.start()
    assert handled.get(timeout=120) == b"1"
    stop.set()
    # The long poll, of 20 s, is ended.
    running.join(120)
    assert not running.is_alive()
    assert consumer.receive(orders) == []


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
    waiting.join(120)

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
    [letter] = Consumer(mqbroker, "repairs").receive("%DLQ%coupons")
    assert (letter.message.body, letter.message.topic) == (b"delayed", "orders")


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
    with pytest.raises(NotImplementedError, match="the broker of tests has no retry_policy of a group"):
        Admin(mqbroker).create_consumer_group("coupons", retry_policy={"kind": "none"})
    with pytest.raises(NotImplementedError, match="the broker of tests has no permission of a topic"):
        Admin(mqbroker).create_topic("orders", permission="r")


def test_a_program_is_tested_without_its_broker(mqbroker: MemoryBroker) -> None:
    producer, consumer = Producer(mqbroker, "shop"), Consumer(mqbroker, "coupons")
    undecided = producer.begin("orders", b"1")
    with ThreadPoolExecutor(1) as threads:
        polling = threads.submit(Consumer(mqbroker.apart(), "coupons").receive, "orders", wait_seconds=20)
        with mqbroker.away():
            with pytest.raises(errors.Unreachable):
                polling.result(timeout=120)
            with pytest.raises(errors.Unreachable, match="the broker of tests is away"):
                producer.send("orders", b"2")
            producer.end(undecided.transaction_id, LocalTransactionState.COMMIT, wait=False)
    assert consumer.receive("orders") == []
    assert producer.transaction(undecided.transaction_id)["state"] == "PREPARED"

    undecided.commit()

    assert bodies(consumer.receive("orders")) == [b"1"]


def test_an_outbox_rolls_back_or_keeps_while_its_broker_is_away(mqbroker: MemoryBroker, tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'shop.sqlite3'}")
    outboxes = [Outbox(Producer(mqbroker, "shop"), engine, on_unavailable=way) for way in ("fail", "keep")]
    outboxes[0].barrier.create_table()

    def sold(outbox: Outbox, item: str) -> None:
        sessions = sessionmaker(engine)
        outbox.listen(sessions)
        with sessions.begin() as session:
            outbox.send(session, "orders", item)

    with mqbroker.away():
        with pytest.raises(errors.Unreachable):
            sold(outboxes[0], "rolled back")
        sold(outboxes[1], "kept")
    assert outboxes[1].answer_checks(seconds=1) == 0

    assert bodies(Consumer(mqbroker, "coupons").receive("orders")) == [b"kept"]
    engine.dispose()
