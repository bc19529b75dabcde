"""Push while a subscription cannot be read or written: its messages are settled as answered, or returned at once."""

import asyncio
import threading
from functools import partial

import pytest
from aiohttp import web
from mqbroker_client import Consumer, Producer

from tests.broker.endpoints import Asked, ProducerEndpoint, says
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.push.operators import Operator


@pytest.mark.parametrize(("status", "letters"), [(204, 0), (500, 1)])
def test_an_answer_settles_its_messages_also_while_no_health_can_be_written(
    operator: Operator,
    producer: Producer,
    server: ProducerEndpoint,
    topic: str,
    name: str,
    status: int,
    letters: int,
) -> None:
    may_answer = threading.Event()

    async def late(asked: Asked) -> web.StreamResponse:
        await asyncio.to_thread(may_answer.wait)
        return await says(status)(asked)

    server.replies(late)
    operator.does("PUT", f"/v1/consumer-groups/{name}", retry_policy={"kind": "none"})
    operator.subscribes(name, topic, server.url, timeout_seconds=30)
    producer.send(topic, b"order 1")
    eventually(lambda: server.asked)

    with operator.holds(name):
        may_answer.set()
        eventually(partial(is_settled, operator, name))

    assert len(operator.does("GET", f"/v1/dead-letters/{name}")["results"]) == letters


def test_messages_that_were_received_for_a_subscription_that_cannot_be_read_are_returned_at_once(
    operator: Operator, broker: RunningBroker, producer: Producer, server: ProducerEndpoint, topic: str, name: str
) -> None:
    operator.subscribes(name, topic, server.url, timeout_seconds=30)
    producer.send(topic, b"the first")
    eventually(lambda: server.asked)

    with operator.hides_subscriptions():
        producer.send(topic, b"order 1")
        eventually(lambda: operator.in_flight(name) == 1)

        # The read of the subscription waits for its lock for 3 s.
        [delivery] = eventually(lambda: Consumer(broker.client(), name).receive(topic, wait_seconds=9))

    assert (delivery.message.body, delivery.delivery_attempt) == (b"order 1", 1)


def is_settled(operator: Operator, name: str) -> bool:
    """Whether nothing is in flight."""
    return operator.in_flight(name) == 0
