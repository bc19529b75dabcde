"""First use: a consumer may start before its producer, and before the queues that it reads."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker import cells, characters
from tests.broker.characters import bodies
from tests.broker.running import QUICK, RunningBroker
from tests.broker.wire import Document, Wire, problem


@pytest.fixture
def strict_broker(prepared: str, broker: RunningBroker, tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker that makes no topic by itself."""
    settings = {**QUICK, "MQBROKER_AUTO_CREATE_TOPICS": "false"}
    with cells.installation(prepared) as database_url:
        redis_url = broker.environment["REDIS_URL"]
        running = RunningBroker(tmp_path, database_url, redis_url, settings, tasks=False)
        with running:
            yield running


@pytest.fixture
def late_consumer(broker: RunningBroker, consumer: Consumer) -> Consumer:
    """A consumer whose group wants only what is sent from its first receive on."""
    Admin(broker.client()).create_consumer_group(consumer.group, start_at="latest")
    return consumer


@pytest.fixture
def narrow_orders(broker: RunningBroker, orders: str) -> str:
    """A topic with one queue."""
    Admin(broker.client()).create_topic(orders, queues=1)
    return orders


def not_there(topic: str) -> dict[str, object]:
    """The refusal of a topic that does not exist."""
    return problem(404, "topic_not_exist", f"There is no topic {topic}: PUT /v1/topics/{topic} makes it.")


def test_a_consumer_that_starts_before_its_producer_gets_the_first_message(
    wire: Wire, producer: Producer, late_consumer: Consumer, orders: str
) -> None:
    received = ThreadPoolExecutor(1).submit(late_consumer.receive, orders, wait_seconds=20)
    assert late_consumer.receive(orders) == []

    producer.send(orders, b"order 1")

    assert bodies(received.result()) == [b"order 1"]
    assert len(wire.get(f"/v1/topics/{orders}").document["offsets"]) == 4


def test_a_receive_makes_no_topic_of_the_brokers_own(wire: Wire) -> None:
    for prefix in ("%RETRY%", "%DLQ%"):
        topic = characters.name(f"{prefix}nobody")

        answer = wire.post("/v1/consumer-groups/coupon-service/receive", {"topic": topic})

        sentence = f"There is no topic {topic}: the broker makes it with its first message."
        assert answer.problem == problem(404, "topic_not_exist", sentence)


def test_a_receive_that_is_refused_makes_no_topic(wire: Wire, orders: str) -> None:
    for path, more in (
        ("no!group", {}),
        ("coupon-service", {"filter": {"sql": "="}}),
        ("coupon-service", {"max_messages": 0}),
    ):
        assert wire.post(f"/v1/consumer-groups/{path}/receive", {"topic": orders, **more}).status == 422

        assert wire.get(f"/v1/topics/{orders}").status == 404


REFUSED: list[Document] = [
    {"body": ""},
    {"body": "order", "queue_id": 4},
    {"body": "order", "delay_seconds": 10**9},
    {"body": "order", "deliver_at": "9999-01-01T00:00:00Z"},
]


@pytest.mark.parametrize("fields", REFUSED)
def test_a_send_that_is_refused_makes_no_topic(wire: Wire, orders: str, fields: Document) -> None:
    assert wire.post("/v1/messages", {"topic": orders, **fields}).status == 422
    assert wire.post("/v1/messages/batch", {"topic": orders, "messages": [fields]}).status == 422
    assert [result["status"] for result in wire.bulk({"op": "send", "topic": orders, **fields})] == [422]
    half = {"topic": orders, "producer_group": characters.name("shop"), **fields}
    assert wire.post("/v1/transactions", half).status == 422
    assert [result["status"] for result in wire.bulk({"op": "half", **half})] == [422]

    assert wire.get(f"/v1/topics/{orders}").status == 404


def test_a_pull_makes_no_topic(wire: Wire, orders: str) -> None:
    assert wire.get(f"/v1/topics/{orders}/queues/0/messages").problem == not_there(orders)


def test_a_receive_makes_no_topic_where_the_operator_does(strict_broker: RunningBroker, orders: str) -> None:
    answer = strict_broker.wire().post("/v1/consumer-groups/coupon-service/receive", {"topic": orders})

    assert answer.problem == not_there(orders)


def test_a_queue_that_appears_while_a_group_runs_is_read_from_its_first_message(
    broker: RunningBroker, producer: Producer, late_consumer: Consumer, narrow_orders: str
) -> None:
    producer.send(narrow_orders, b"before")
    assert late_consumer.receive(narrow_orders) == []
    Admin(broker.client()).create_topic(narrow_orders, queues=2)

    producer.send(narrow_orders, b"order 1", queue_id=1)

    assert bodies(late_consumer.receive(narrow_orders, wait_seconds=20)) == [b"order 1"]


def test_a_reset_of_one_queue_lets_a_new_group_begin_in_the_others_where_it_would_have(
    wire: Wire, producer: Producer, late_consumer: Consumer, orders: str
) -> None:
    for queue_id in range(4):
        producer.send(orders, b"order 1", queue_id=queue_id)

    place = f'{{"topic": "{orders}", "to": 0, "queue_id": 1}}'.encode()
    assert wire.call("PUT", f"/v1/consumer-groups/{late_consumer.group}/offsets", place).status == 200

    assert [delivery.queue_id for delivery in late_consumer.receive(orders)] == [1]
    for question in ("", f"?topic={orders}"):
        places = wire.get(f"/v1/consumer-groups/{late_consumer.group}/offsets{question}").document["results"]
        assert [row["next_offset"] for row in places if row["topic"] == orders] == [1, 1, 1, 1]
