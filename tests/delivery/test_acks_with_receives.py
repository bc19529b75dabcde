"""A receive may bring the receipts of what its consumer is done with: they are acked before it begins."""

import pytest
from mqbroker_client import Consumer, Producer
from mqbroker_client.aio import AsyncBroker, AsyncConsumer
from mqbroker_client.core import errors

from tests.broker.characters import bodies
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Wire, problem


async def test_a_task_acks_with_its_next_receive(broker: RunningBroker, producer: Producer, orders: str) -> None:
    producer.send(orders, b"order 1")
    async with AsyncBroker(broker.url, API_KEY) as line:
        consumer = AsyncConsumer(line, orders)
        received = await consumer.receive(orders)
        nothing = await consumer.receive(orders, ack=received)
        [late] = await consumer.ack(received)

    assert (nothing, [settled.status for settled in nothing.acked], late.status) == ([], [200], 410)


def test_an_expired_receipt_has_its_own_result_and_the_receive_goes_on(
    producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1", queue_id=0)
    first = consumer.receive(orders)
    consumer.ack(first)
    producer.send(orders, b"order 2", queue_id=0)

    received = consumer.receive(orders, ack=first)

    assert (bodies(received), [settled.status for settled in received.acked]) == ([b"order 2"], [410])


def test_what_was_acked_is_done_where_the_receive_is_refused(
    producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    received = consumer.receive(orders)

    with pytest.raises(errors.MessageIllegal, match="max_messages"):
        consumer.receive(orders, max_messages=0)
    with pytest.raises(errors.FilterIllegal):
        consumer.receive(orders, filter={"sql": "price >"}, ack=received)

    assert [settled.status for settled in consumer.ack(received)] == [410]


def test_receipts_that_are_none_refuse_the_receive(wire: Wire, consumer: Consumer, orders: str) -> None:
    consumer.receive(orders)
    for count in (0, 1001):
        receive = {"topic": orders, "ack": ["x"] * count}
        answer = wire.post(f"/v1/consumer-groups/{consumer.group}/receive", receive)

        assert answer.problem == problem(422, "message_illegal", f"ack has {count} handles: give 1 to 1000.")
