"""A broker of FastStream that a test's handlers are made on, and what they have done."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mqbroker_client.contrib.faststream import MqBroker

from tests.broker import characters
from tests.broker.polling import at_this_load
from tests.broker.running import API_KEY, RunningBroker


@pytest.fixture
def mq(broker: RunningBroker) -> MqBroker:
    """A broker of FastStream that is not connected."""
    return MqBroker(broker.url, API_KEY, producer_group=characters.name("shop"), logger=None)


@pytest.fixture
def group() -> str:
    return characters.name("coupons")


@asynccontextmanager
async def started(mq: MqBroker) -> AsyncIterator[MqBroker]:
    """It runs."""
    async with mq:
        await mq.start()
        yield mq


async def found(queue: "asyncio.Queue[Any]", count: int = 1) -> list[Any]:
    """The next results of handlers."""
    return [await asyncio.wait_for(queue.get(), at_this_load(20)) for _ in range(count)]
