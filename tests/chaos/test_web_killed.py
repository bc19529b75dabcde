"""A web process that ends under load: what it acknowledged is kept, once, and the other one serves on."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest
from mqbroker_client import Admin

from tests.broker import databases
from tests.broker.load import Crowd
from tests.broker.running import RunningBroker
from tests.chaos.shops import Shop, everything

ENDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)
ACKNOWLEDGED_BETWEEN_ENDS = 300


@pytest.fixture(scope="module")
def broker(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker whose web processes may be killed."""
    with databases.copied(prepared) as database_url:
        folder = tmp_path_factory.mktemp("broker")
        broker = RunningBroker(folder, database_url, os.environ["REDIS_URL"], webs=2, tasks=False)
        with broker:
            yield broker


async def test_what_was_acknowledged_outlives_the_end_of_its_web_process(broker: RunningBroker, orders: str) -> None:
    Admin(broker.client()).create_topic(orders, queues=4)

    async with Crowd(broker.urls) as crowd:
        async with Shop(crowd, orders) as shop:
            for number, end in enumerate(ENDS):
                await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN_ENDS)
                web = broker.webs[number % 2]
                web.send_to_group(end)
                assert await asyncio.to_thread(web.wait, 20)
                await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN_ENDS)
                web.start()
            await asyncio.to_thread(broker.wait_until_ready)
        found = await everything(crowd, orders)

    assert shop.ledger.flaws(found) == []
