"""An upgrade without a stop: processes of two versions serve one database, and are replaced one after the other.

The earlier version is the commit before the last one that added a migration; MQ_UPGRADE_FROM names another one, such as
the tag of a release. In a clone without that history the tests are skipped.
"""

import asyncio
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from mqbroker_client import Admin

from tests.broker import databases
from tests.broker.load import Crowd
from tests.broker.polling import at_this_load
from tests.broker.ports import free_port
from tests.broker.running import QUICK, RunningBroker
from tests.chaos.shops import Shop, everything
from tests.chaos.versions import ACKNOWLEDGED_BETWEEN, checkout, replaced

MIGRATIONS = (":(glob)*/migrations/0*.py", ":(glob)*/*/migrations/0*.py")
# What a caller with several addresses waits at most, whatever is replaced.
LONGEST_GAP_SECONDS = 1.0
SETTINGS = QUICK | {"MQBROKER_TRANSACTION_TIMEOUT_SECONDS": "600"}


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of the earlier version."""
    return checkout(tmp_path_factory.mktemp("earlier"), MIGRATIONS)


@pytest.fixture
def versions(earlier: Path, tmp_path: Path) -> Iterator[tuple[RunningBroker, RunningBroker]]:
    """A broker of the earlier version that runs, and one of this version for the same database and addresses."""
    ports, redis_url = [free_port(), free_port()], os.environ["REDIS_URL"]
    with databases.fresh() as url, ExitStack() as ends:
        old = RunningBroker(tmp_path / "old", url, redis_url, SETTINGS, ports=ports, checkout=earlier)
        new = RunningBroker(tmp_path / "new", url, redis_url, SETTINGS, ports=ports)
        old.prepare()
        ends.callback(new.close)
        yield ends.enter_context(old), new
    assert "Traceback" not in old.log() + new.log()


def longest_gap(answered: Sequence[float]) -> float:
    """The longest time between two answers to one caller, in seconds."""
    return max(later - earlier for earlier, later in itertools.pairwise(answered))


async def test_processes_are_replaced_under_load_and_nothing_is_lost_or_waits_long(
    versions: tuple[RunningBroker, RunningBroker], orders: str
) -> None:
    old, new = versions
    await asyncio.to_thread(partial(Admin(old.client()).create_topic, orders, queues=4))

    async with Crowd(old.urls) as crowd:
        async with Shop(crowd, orders) as shop:
            await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN)
            began = time.monotonic()
            await asyncio.to_thread(new.prepare)
            await replaced(old, new, shop)
            seconds = time.monotonic() - began
        found = await everything(crowd, orders)

    assert shop.ledger.flaws(found) == []
    gap = max(longest_gap(answered) for answered in shop.answered.values())
    print(f"{len(shop.ledger.visible) / seconds:.0f} messages/s, the longest gap of a caller {gap:.2f} s")
    assert gap < at_this_load(LONGEST_GAP_SECONDS)
