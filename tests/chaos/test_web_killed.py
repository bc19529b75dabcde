"""A web process that ends under load: what it acknowledged is kept, once, and another one serves on."""

import asyncio
import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from mqbroker_client import Admin

from tests.broker import databases
from tests.broker.load import Crowd
from tests.broker.polling import at_this_load
from tests.broker.running import RunningBroker
from tests.chaos.shops import Shop, everything

ENDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)
ACKNOWLEDGED_BETWEEN_ENDS = 300
LONGEST_GAP_SECONDS = 0.3


@pytest.fixture(scope="module")
def broker(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker whose web processes may be killed."""
    with databases.copied(prepared) as database_url:
        folder = tmp_path_factory.mktemp("broker")
        broker = RunningBroker(folder, database_url, os.environ["REDIS_URL"], webs=2, tasks=False)
        with broker:
            yield broker


@pytest.fixture
def backed(prepared: str, tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker whose one web process has a standby."""
    with databases.copied(prepared) as database_url:
        redis_url = os.environ["REDIS_URL"]
        with RunningBroker(tmp_path, database_url, redis_url, processes="standby", tasks=False) as broker:
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


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "asked to"])
async def test_where_a_process_stands_by_no_caller_waits_long_and_nothing_is_lost_or_stored_twice(
    backed: RunningBroker, orders: str, end: signal.Signals
) -> None:
    Admin(backed.client()).create_topic(orders, queues=4)
    standby = psutil.Process(backed.webs[0].pid)

    async with Crowd(backed.urls) as crowd:
        async with Shop(crowd, orders) as shop:
            for _ in ENDS:
                await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN_ENDS)
                [serving] = standby.children()
                serving.send_signal(end)
                assert await asyncio.to_thread(serving.wait, 20) in (None, 0)
                await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN_ENDS)
        found = await everything(crowd, orders)

    assert shop.ledger.flaws(found) == []
    gaps = [later - earlier for times in shop.answered.values() for earlier, later in itertools.pairwise(times)]
    assert max(gaps) <= at_this_load(LONGEST_GAP_SECONDS)
