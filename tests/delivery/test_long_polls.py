"""Long polls: a waiting consumer is woken when a message becomes visible, wherever that happens, and costs nothing."""

import asyncio
import resource
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import psycopg
import pytest
from mqbroker_client import Admin, Consumer, Delivery, Producer

from tests.broker.characters import bodies
from tests.broker.load import Crowd
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire

# More than a web server or a system takes without being told: 1024 connections, 1024 open files.
WAITING = 1100
# Without a wake-up a waiting consumer looks again after 5 s.
QUICKLY_SECONDS = 2.0
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def waiting(consumer: Consumer, topic: str) -> Future[list[Delivery]]:
    """A receive that waits for a message, in a thread."""
    return ThreadPoolExecutor(1).submit(consumer.receive, topic, wait_seconds=20)


def test_a_waiting_consumer_is_woken_by_a_message_sent_to_another_web_process(
    producer: Producer, distant_consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"the first")
    distant_consumer.receive(orders)

    for number in range(3):
        received = waiting(distant_consumer, orders)
        sent_at = time.monotonic()
        producer.send(orders, f"order {number}".encode())

        assert bodies(received.result()) == [f"order {number}".encode()]
        assert time.monotonic() - sent_at < QUICKLY_SECONDS


def test_a_waiting_consumer_is_woken_by_a_commit(producer: Producer, distant_consumer: Consumer, orders: str) -> None:
    transaction = producer.begin(orders, b"order 1")
    received = waiting(distant_consumer, orders)

    transaction.commit()

    assert bodies(received.result()) == [b"order 1"]


def test_a_waiting_consumer_is_woken_by_the_end_of_a_delay(
    producer: Producer, distant_consumer: Consumer, orders: str
) -> None:
    sent_at = time.monotonic()
    producer.send(orders, b"order 1", delay_seconds=1)

    received = waiting(distant_consumer, orders).result()

    assert bodies(received) == [b"order 1"]
    assert 1 <= time.monotonic() - sent_at < 1 + QUICKLY_SECONDS


def test_a_waiting_reader_of_a_queue_is_woken(producer: Producer, distant_consumer: Consumer, orders: str) -> None:
    offset = producer.send(orders, b"order 1", queue_id=1).queue_offset
    assert offset == 0
    page = ThreadPoolExecutor(1).submit(distant_consumer.pull, orders, 1, 1, wait_seconds=20)

    producer.send(orders, b"order 2", queue_id=1)

    assert bodies(page.result().messages) == [b"order 2"]


def test_a_group_that_is_paused_while_its_consumer_waits_is_handed_nothing(
    broker: RunningBroker, producer: Producer, distant_consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    distant_consumer.receive(orders)
    received = ThreadPoolExecutor(1).submit(distant_consumer.receive, orders, wait_seconds=4)
    Admin(broker.client()).create_consumer_group(distant_consumer.group, paused=True)
    # Other processes see a change within 2 s.
    time.sleep(2)

    producer.send(orders, b"order 2")

    assert received.result() == []


def test_a_wait_for_a_topic_that_is_taken_away_ends_with_a_refusal(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    consumer.receive(orders)
    asked = {"topic": orders, "wait_seconds": 20}
    answer = ThreadPoolExecutor(1).submit(wire.post, f"/v1/consumer-groups/{consumer.group}/receive", asked)

    wire.call("DELETE", f"/v1/topics/{orders}")

    assert answer.result().problem["code"] == "topic_not_exist"


def test_a_wait_ends_without_a_message(producer: Producer, consumer: Consumer, orders: str) -> None:
    producer.send(orders, b"order 1")
    consumer.receive(orders)
    began = time.monotonic()

    assert consumer.receive(orders, wait_seconds=1) == []

    assert 1 <= time.monotonic() - began < 1 + QUICKLY_SECONDS


@pytest.fixture
def many_files() -> Iterator[None]:
    """As many open files as the system allows."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("many_files")
async def test_a_thousand_consumers_who_wait_at_one_process_hold_no_session_and_each_gets_a_message(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"the first")
    consumer.receive(orders)
    asked = {"topic": orders, "max_messages": 1, "wait_seconds": 20}

    async with Crowd(broker.urls[:1], connections=WAITING + 10) as crowd:
        receive = f"/v1/consumer-groups/{consumer.group}/receive"
        waits = [asyncio.create_task(crowd.post(receive, asked)) for _ in range(WAITING)]
        sessions = await asyncio.to_thread(sessions_when_calm, broker)
        for numbers in (range(WAITING // 2), range(WAITING // 2, WAITING)):
            await crowd.bulk({"op": "send", "topic": orders, "body": f"order {number}"} for number in numbers)
        answers = await asyncio.gather(*waits)

    # Two web processes of at most 6 sessions each, the worker's likewise, and what the control plane keeps.
    assert sessions <= 25
    received = sorted(entry["message"]["body"] for _, document in answers for entry in document["messages"])
    assert received == sorted(f"order {number}" for number in range(WAITING))


def sessions_when_calm(broker: RunningBroker) -> int:
    """How many sessions the broker has in its database while nothing is running in any of them."""
    with psycopg.connect(broker.database_url, autocommit=True) as connection:
        eventually(lambda: connection.execute(f"{SESSIONS} AND state = 'active'").fetchone() == (0,))
        found = connection.execute(SESSIONS).fetchone()
    assert found is not None
    return int(found[0])
