"""`TestMqBroker`: handlers on the broker within the process, without a server."""

import asyncio
from typing import Any

import pytest
from mqbroker_client.contrib.faststream import MqBroker, TestMqBroker
from mqbroker_client.core import errors

ORDERS, COUPONS = "orders", "coupons"


@pytest.fixture
def mq() -> MqBroker:
    """A broker that is never connected."""
    return MqBroker("http://127.0.0.1:1", "mq_none", logger=None)


def test_what_is_published_is_handled_before_it_returns(mq: MqBroker) -> None:
    @mq.publisher(COUPONS)
    @mq.subscriber(ORDERS, group="coupons", filter="paid")
    async def give(item: str) -> str:
        return f"coupon for {item}"

    coupons = mq.publisher(COUPONS)

    async def run() -> None:
        async with TestMqBroker(mq) as broker:
            await broker.publish("cup", ORDERS, tags="open")
            await broker.publish("tea", ORDERS, tags="paid")
            give.mock.assert_called_once_with("tea")
            coupons.mock.assert_called_once_with("coupon for tea")

    asyncio.run(run())


def test_what_a_handler_raises_is_raised_and_its_message_comes_again(mq: MqBroker) -> None:
    seen: list[str] = []

    @mq.subscriber(ORDERS, group="coupons")
    async def handle(item: str) -> None:
        seen.append(item)
        if len(seen) == 1:
            raise ValueError("no stock")

    test: Any = TestMqBroker(mq)

    async def run() -> None:
        async with test as broker:
            with pytest.raises(ValueError, match="no stock"):
                await broker.publish("tea", ORDERS)
            await test.deliver()
            assert seen == ["tea"]
            test.memory.advance(3600)
            await test.deliver()

    asyncio.run(run())
    assert seen == ["tea", "tea"]


def test_the_rules_of_the_broker_hold(mq: MqBroker) -> None:
    async def run() -> None:
        async with TestMqBroker(mq) as broker:
            await broker.publish("tea", "no name")

    with pytest.raises(errors.TopicIllegal):
        asyncio.run(run())
