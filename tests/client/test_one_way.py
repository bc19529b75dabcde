"""A one-way send: it returns at once, is sent in the background, and what is lost is counted and logged."""

import asyncio
import logging
import subprocess
import sys

import pytest
from mqbroker_client import Broker, Consumer, Producer, Retry
from mqbroker_client.aio import AsyncBroker, AsyncProducer
from mqbroker_client.core.later import MOST_WAITING

from tests.broker.characters import bodies
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import received_until_empty
from tests.client.answers import problem
from tests.client.pages import environment
from tests.client.servers import Silence, scripted

PROGRAM = """
import sys
from mqbroker_client import Broker, Producer

producer = Producer(Broker(sys.argv[1], sys.argv[2]), "shop")
for number in range(100):
    producer.send(sys.argv[3], f"{number}", wait=False)
"""


def test_what_a_program_sent_one_way_is_there_behind_its_end(
    broker: RunningBroker, consumer: Consumer, orders: str
) -> None:
    words = [sys.executable, "-c", PROGRAM, broker.url, API_KEY, orders]
    subprocess.run(words, env=environment(), check=True)

    assert sorted(bodies(received_until_empty(consumer, orders))) == sorted(b"%d" % number for number in range(100))


def test_a_task_sends_one_way_and_a_close_sends_the_rest(
    broker: RunningBroker, consumer: Consumer, orders: str
) -> None:
    async def send() -> int:
        async with AsyncBroker(broker.url, API_KEY) as line:
            for number in range(20):
                await AsyncProducer(line, "shop").send(orders, f"{number}", wait=False)
            return line.lost

    assert asyncio.run(send()) == 0
    assert len(received_until_empty(consumer, orders)) == 20


def test_a_message_that_is_refused_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with scripted(problem(400, "message_illegal", "a body has at least one byte")) as server:
        producer = Producer(Broker(server.url, "mq_key", retry=Retry(tries=1)), "shop")
        producer.send("orders", "x", wait=False)
        producer.broker.close()

        assert producer.broker.lost == 1
    assert "1 call was not sent (the message is lost): " in caplog.text


def test_a_message_without_room_is_lost_and_its_caller_does_not_wait(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "mqbroker_client.core.later")
    with scripted(lambda asked: Silence()) as server:
        producer = Producer(Broker(server.url, "mq_key", retry=Retry(tries=1, seconds=60)), "shop")
        producer.send("orders", "first", wait=False)
        server.wait_for(requests=1)
        for _ in range(MOST_WAITING + 5):
            producer.send("orders", "x", wait=False)

        assert producer.broker.lost == 5
        producer.broker.close(timeout_seconds=0)
