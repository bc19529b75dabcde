"""Push while workers end: what was in flight is finished, or comes again."""

import asyncio
import os
import threading
from collections.abc import Iterator

import pytest
from aiohttp import web
from mqbroker_client import Producer

from tests.broker import cells
from tests.broker.endpoints import Asked, ProducerEndpoint, silence
from tests.broker.polling import eventually
from tests.broker.receiving import let_deliveries_expire
from tests.broker.running import RunningBroker
from tests.conftest import REDIS_URL
from tests.push.operators import Operator
from tests.push.servers import acks, pushed, texts

pytestmark = pytest.mark.chaos


@pytest.fixture(scope="module")
def broker(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker of these tests' own, whose worker may end."""
    with cells.installation(prepared) as database_url:
        running = RunningBroker(tmp_path_factory.mktemp("mortal"), database_url, os.environ.get("REDIS_URL", REDIS_URL))
        with running:
            yield running


@pytest.fixture
def working_broker(broker: RunningBroker) -> RunningBroker:
    """The same with its worker running."""
    if not broker.worker.is_running():
        broker.worker.start()
    return broker


def test_a_worker_that_is_told_to_stop_finishes_its_calls(
    working_broker: RunningBroker,
    operator: Operator,
    producer: Producer,
    server: ProducerEndpoint,
    topic: str,
    name: str,
) -> None:
    told_to_stop = threading.Event()

    async def ack(asked: Asked) -> web.StreamResponse:
        await asyncio.to_thread(told_to_stop.wait)
        return await acks(after_seconds=0.2)(asked)

    server.replies(ack)
    operator.subscribes(name, topic, server.url, timeout_seconds=30)
    producer.send(topic, b"order 1")
    eventually(lambda: server.asked)

    working_broker.worker.ask_to_stop()
    told_to_stop.set()

    assert working_broker.worker.wait(seconds=30)
    assert operator.in_flight(name) == 0
    assert texts(server) == ["order 1"]


def test_a_worker_that_ends_while_messages_come_leaves_none_in_flight(
    working_broker: RunningBroker,
    operator: Operator,
    producer: Producer,
    server: ProducerEndpoint,
    topic: str,
    name: str,
) -> None:
    """What it receives while it ends, it gives back."""
    server.replies(acks())
    operator.subscribes(name, topic, server.url, timeout_seconds=30, concurrency=1)
    producer.send(topic, b"the first")
    eventually(lambda: server.asked)
    stop = threading.Event()

    def send_on() -> None:
        while not stop.is_set():
            producer.send(topic, b"order")

    sender = threading.Thread(target=send_on)
    sender.start()
    try:
        eventually(lambda: len(server.asked) > 20)
        working_broker.worker.ask_to_stop()
        assert working_broker.worker.wait(seconds=30)
        left = operator.in_flight(name)
    finally:
        stop.set()
        sender.join()

    assert left == 0


def test_what_a_killed_worker_had_in_flight_is_pushed_again_also_without_workers_and_beat(
    working_broker: RunningBroker,
    operator: Operator,
    producer: Producer,
    server: ProducerEndpoint,
    topic: str,
    name: str,
) -> None:
    operator.does("PUT", f"/v1/consumer-groups/{name}", retry_policy={"kind": "table", "delay_seconds": [0]})
    server.replies(silence(30), acks())
    operator.subscribes(name, topic, server.url, timeout_seconds=30)
    producer.send(topic, b"order 1")
    eventually(lambda: server.asked)

    working_broker.worker.kill()
    working_broker.beat.kill()
    operator.changes(name, timeout_seconds=1)
    let_deliveries_expire(working_broker, topic, name)

    eventually(lambda: len(pushed(server)) == 2 and operator.in_flight(name) == 0)
    assert [entry["delivery_attempt"] for entry in pushed(server)] == [1, 2]
