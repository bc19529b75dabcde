"""Headers are properties; what FastStream itself keeps in a message is under names that no producer has by chance."""

import asyncio
from typing import Annotated, Any

import pytest
from faststream.params import Context
from mqbroker_client import Consumer, Message, Producer
from mqbroker_client.contrib.faststream import MqBroker, MqMessage

from tests.broker import characters
from tests.broker.running import RunningBroker
from tests.faststream.conftest import found, started


def test_properties_of_another_producer_are_headers_and_command_nothing(
    broker: RunningBroker, mq: MqBroker, orders: str, coupons: str, group: str
) -> None:
    handled: asyncio.Queue[Any] = asyncio.Queue()
    given = {"reply_to": coupons, "Reply-To": coupons, "content_type": "application/json", "correlation_id": "theirs"}

    @mq.subscriber(orders, group=group)
    async def handle(body: Any, message: Annotated[MqMessage, Context("message")]) -> str:
        await handled.put((body, message.headers, message.reply_to, message.correlation_id))
        return "an answer"

    producer = Producer(broker.client(), characters.name("shop"))
    message = Message(orders, b"no JSON", properties=given)
    producer.send_message(message)

    async def run() -> Any:
        async with started(mq):
            [first] = await found(handled)
            # A reply would go with the ack, which is done once the next one is handled.
            await mq.publish("next", orders)
            await found(handled)
            return first

    assert asyncio.run(run()) == (b"no JSON", given, "", str(message.message_id))
    assert Consumer(broker.client(), characters.name("audit")).receive(coupons) == []


@pytest.mark.parametrize("name", ["faststream-reply-to", "faststream-content-type", "faststream-correlation-id"])
@pytest.mark.parametrize("way", ["headers", "properties"])
def test_a_header_of_fast_streams_own_is_refused(mq: MqBroker, orders: str, name: str, way: str) -> None:
    async def run() -> None:
        async with mq:
            fields: Any = {way: {name: "x"}}
            await mq.publish("tea", orders, **fields)

    with pytest.raises(ValueError, match=f"{name} is no header of yours"):
        asyncio.run(run())
