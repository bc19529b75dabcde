"""What a handler did is settled when the broker takes it: a topic that is closed for a time costs no retry."""

import pytest
from mqbroker_client import Admin, Consumer, Delivery, Message, Producer

from tests.broker import characters
from tests.broker.characters import bodies
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.client.test_running import KINDS, running
from tests.control.operators import Operator


@KINDS
def test_messages_for_a_topic_that_is_closed_for_a_time_wait_in_hand(
    kind: str, broker: RunningBroker, orders: str, caplog: pytest.LogCaptureFixture
) -> None:
    paid, operator = f"/v1/topics/{orders}-paid", Operator(broker.url, API_KEY)
    operator.put(paid, queues=1, sends_from="9999-01-01T00:00:00Z")
    Admin(broker.client()).create_consumer_group(orders, max_reconsume_times=0)
    Producer(broker.client(), orders).send(orders, b"order 1")
    handled: list[int] = []

    def handler(delivery: Delivery) -> Message:
        handled.append(delivery.delivery_attempt)
        return Message(f"{orders}-paid", b"paid 1")

    with running(kind, broker, orders, handler, invisible_seconds=10, ordered=False):
        eventually(lambda: "sends_forbidden" in caplog.text)
        operator.put(paid, sends_from=None)
        found = Consumer(broker.client(), characters.name("shipping")).receive(f"{orders}-paid", wait_seconds=20)

    assert bodies(found) == [b"paid 1"]
    assert handled == [1]
