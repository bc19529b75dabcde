"""Long polls: a waiting consumer is woken when a message becomes visible, wherever that happens, and costs nothing."""

import asyncio
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import psycopg
import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.load import Crowd
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Request, Wire

# More than a web server or a system takes by default: 1024 connections, 1024 open files.
WAITING = 1100
# Without a wake-up a blocked receive reads again so long after its first read.
READS_AGAIN_SECONDS = 5.0
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@dataclass(frozen=True)
class LongPoll:
    """A request that waits at the broker for a message: its first look found nothing before the test goes on."""

    request: Request
    began: float

    @classmethod
    def receive(cls, consumer: Consumer, topic: str, seconds: float = 20) -> Self:
        asked = {"topic": topic, "wait_seconds": seconds}
        receive = f"/v1/consumer-groups/{consumer.group}/receive"
        began = time.monotonic()
        poll = cls(wire_of(consumer).ask("POST", receive, json.dumps(asked).encode()), began)
        # Its turn came before that of this one: both go through the same process, which writes a group's receives in
        # their order.
        assert consumer.receive(topic) == []
        return poll

    @classmethod
    def pull(cls, consumer: Consumer, topic: str, queue_id: int, offset: int) -> Self:
        page = f"/v1/topics/{topic}/queues/{queue_id}/messages?offset={offset}"
        began = time.monotonic()
        poll = cls(wire_of(consumer).ask("GET", f"{page}&wait_seconds=20"), began)
        assert wire_of(consumer).get(page).document["messages"] == []
        return poll

    def bodies(self) -> list[str]:
        """What it gets."""
        answer = self.request.answer()
        assert answer.status == 200, answer
        return [entry["message"]["body"] for entry in answer.document["messages"]]

    def bodies_at_once(self) -> list[str]:
        """What it gets, before it would have read again by itself."""
        found = self.bodies()
        assert time.monotonic() - self.began < READS_AGAIN_SECONDS
        return found


def wire_of(consumer: Consumer) -> Wire:
    """Plain HTTP to the process that the consumer speaks to."""
    return Wire(consumer.broker.url, API_KEY)


def test_a_waiting_consumer_is_woken_by_a_message_sent_to_another_web_process(
    producer: Producer, distant_consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"the first")
    distant_consumer.receive(orders)

    for number in range(3):
        poll = LongPoll.receive(distant_consumer, orders)
        producer.send(orders, f"order {number}".encode())

        assert poll.bodies_at_once() == [f"order {number}"]


def test_a_waiting_consumer_is_woken_by_a_commit(producer: Producer, distant_consumer: Consumer, orders: str) -> None:
    transaction = producer.begin(orders, b"order 1")
    poll = LongPoll.receive(distant_consumer, orders)

    transaction.commit()

    assert poll.bodies_at_once() == ["order 1"]


def test_a_waiting_consumer_is_woken_by_the_end_of_a_delay(
    producer: Producer, distant_consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"the first")
    distant_consumer.receive(orders)
    poll = LongPoll.receive(distant_consumer, orders)
    sent_at = time.monotonic()

    producer.send(orders, b"order 1", delay_seconds=1)

    assert poll.bodies_at_once() == ["order 1"]
    assert time.monotonic() - sent_at >= 1


def test_a_waiting_reader_of_a_queue_is_woken(producer: Producer, distant_consumer: Consumer, orders: str) -> None:
    offset = producer.send(orders, b"order 1", queue_id=1).queue_offset
    assert offset == 0
    poll = LongPoll.pull(distant_consumer, orders, 1, 1)

    producer.send(orders, b"order 2", queue_id=1)

    assert poll.bodies_at_once() == ["order 2"]


@pytest.mark.parametrize(
    ("method", "body", "code"),
    [("DELETE", None, "topic_not_exist"), ("PUT", b'{"permission": "w"}', "topic_forbidden")],
    ids=["deleted", "closed to readers"],
)
def test_a_reader_that_waits_on_a_topic_reads_nothing_of_it_once_it_is(
    broker: RunningBroker,
    producer: Producer,
    distant_consumer: Consumer,
    orders: str,
    method: str,
    body: bytes | None,
    code: str,
) -> None:
    producer.send(orders, b"order 1", queue_id=1, delay_level=1)
    poll = LongPoll.pull(distant_consumer, orders, 1, 0)

    assert broker.wire().call(method, f"/v1/topics/{orders}", body).status in (200, 204)

    assert poll.request.answer().problem["code"] == code


def test_a_group_that_is_paused_while_its_consumer_waits_is_handed_nothing(
    broker: RunningBroker, producer: Producer, distant_consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    distant_consumer.receive(orders)
    poll = LongPoll.receive(distant_consumer, orders, seconds=4)
    admin = Admin(broker.client())
    admin.create_consumer_group(distant_consumer.group, paused=True)

    producer.send(orders, b"order 2")

    assert poll.bodies() == []
    admin.create_consumer_group(distant_consumer.group, paused=False)
    assert bodies(eventually(lambda: distant_consumer.receive(orders))) == [b"order 2"]


def test_a_wait_for_a_topic_that_is_taken_away_ends_with_a_refusal(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    consumer.receive(orders)
    poll = LongPoll.receive(consumer, orders)

    wire.call("DELETE", f"/v1/topics/{orders}")

    assert poll.request.answer().problem["code"] == "topic_not_exist"


def test_a_wait_ends_without_a_message(producer: Producer, consumer: Consumer, orders: str) -> None:
    producer.send(orders, b"order 1")
    consumer.receive(orders)
    began = time.monotonic()

    assert consumer.receive(orders, wait_seconds=1) == []

    # Before it would have read again, too.
    assert 1 <= time.monotonic() - began < at_this_load(4)


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

    # Of two web processes and a worker: 4 sessions to read, 6 to write, one to listen and 4 of the control plane each.
    assert sessions <= 45
    received = sorted(entry["message"]["body"] for _, document in answers for entry in document["messages"])
    assert received == sorted(f"order {number}" for number in range(WAITING))


def sessions_when_calm(broker: RunningBroker) -> int:
    """How many sessions the broker has in its database while nothing is running in any of them."""
    with psycopg.connect(broker.database_url, autocommit=True) as connection:
        eventually(lambda: connection.execute(f"{SESSIONS} AND state = 'active'").fetchone() == (0,))
        found = connection.execute(SESSIONS).fetchone()
    assert found is not None
    return int(found[0])
