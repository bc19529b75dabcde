"""Push while a subscription cannot be read or written: its messages are settled as answered, or returned at once."""

import asyncio
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest
from aiohttp import web
from mqbroker_client import Consumer, Delivery, Producer

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


@dataclass
class Subscribed:
    """A subscription that is pushed."""

    operator: Operator
    broker: RunningBroker
    producer: Producer
    server: ProducerEndpoint
    topic: str
    name: str

    @contextmanager
    def received_unread(self) -> Iterator[bytes]:
        """Hides subscriptions while a push has received a message, whose body this gives: the push cannot read its
        subscription before the call. A push that reads its subscription before the receive stops; then the next tries.
        """
        for number in itertools.count(1):
            before = len(self.server.asked)
            self.producer.send(self.topic, b"wakes a push")
            eventually(partial(self._has_pushed, before))
            stops = self._stops()
            with self.operator.hides_subscriptions():
                body = f"order {number}".encode()
                self.producer.send(self.topic, body)
                if eventually(partial(self._is_received_or_stopped, stops)) == "received":
                    yield body
                    return

    def receives(self) -> Delivery:
        [delivery] = eventually(lambda: Consumer(self.broker.client(), self.name).receive(self.topic, wait_seconds=9))
        return delivery

    def _has_pushed(self, before: int) -> bool:
        return len(self.server.asked) > before and is_settled(self.operator, self.name)

    def _is_received_or_stopped(self, stops: int) -> str | None:
        if self.operator.in_flight(self.name) == 1:
            return "received"
        return "stopped" if self._stops() > stops else None

    def _stops(self) -> int:
        return self.broker.log().count(f"a push stopped subscription={self.name}")


@pytest.fixture
def subscribed(
    operator: Operator, broker: RunningBroker, producer: Producer, server: ProducerEndpoint, topic: str, name: str
) -> Subscribed:
    operator.subscribes(name, topic, server.url, timeout_seconds=30)
    return Subscribed(operator, broker, producer, server, topic, name)


def test_messages_that_were_received_for_a_subscription_that_cannot_be_read_are_returned_at_once(
    subscribed: Subscribed,
) -> None:
    with subscribed.received_unread() as body:
        # The read of the subscription waits for its lock for 3 s.
        delivery = subscribed.receives()

    assert (delivery.message.body, delivery.delivery_attempt) == (body, 1)


def is_settled(operator: Operator, name: str) -> bool:
    """Whether nothing is in flight."""
    return operator.in_flight(name) == 0
