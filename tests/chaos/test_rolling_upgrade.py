"""An upgrade without a stop: processes of two versions serve one database, and are replaced one after the other.

The earlier version is the commit before the last one that added a migration; MQ_UPGRADE_FROM names another one, such as
the tag of a release. In a clone without that history the tests are skipped.
"""

import asyncio
import itertools
import os
import subprocess
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest
from mqbroker_client import Admin

from mqbroker.embedded.commands import ROOT
from tests.broker import databases
from tests.broker.load import Crowd
from tests.broker.polling import at_this_load
from tests.broker.ports import free_port
from tests.broker.running import QUICK, RunningBroker
from tests.chaos.shops import Shop, everything

MIGRATIONS = (":(glob)*/migrations/0*.py", ":(glob)*/*/migrations/0*.py")
ADDED = ("log", "-1", "--format=%H", "--diff-filter=A", "--", *MIGRATIONS)
ACKNOWLEDGED_BETWEEN = 200
# What a caller with several addresses waits at most, whatever is replaced.
LONGEST_GAP_SECONDS = 1.0
SETTINGS = QUICK | {"MQBROKER_TRANSACTION_TIMEOUT_SECONDS": "600"}


def git(*words: str) -> bytes:
    """What git prints. Skips the test where it has nothing to say."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True)
    if done.returncode or not done.stdout.strip():
        pytest.skip("the earlier version is not in this clone's history")
    return done.stdout


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of the earlier version."""
    revision = os.environ.get("MQ_UPGRADE_FROM") or f"{git(*ADDED).decode().strip()}~1"
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(fileobj=BytesIO(git("archive", revision))) as archive:
        archive.extractall(folder, filter="data")
    return folder


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


async def replaces(old: RunningBroker, new: RunningBroker, shop: Shop) -> None:
    """Prepares the database for the new version, then replaces process by process while the shop works."""
    await asyncio.to_thread(new.prepare)
    await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN)
    for number, (earlier, later) in enumerate(zip(old.children, new.children, strict=True)):
        await asyncio.to_thread(earlier.stop)
        await asyncio.to_thread(later.start)
        if number < len(new.webs):
            await asyncio.to_thread(new.wait_until_answers, number)
        shop.forget_acknowledged()
        await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN)


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
            await replaces(old, new, shop)
            seconds = time.monotonic() - began
        found = await everything(crowd, orders)

    assert shop.ledger.flaws(found) == []
    gap = max(longest_gap(answered) for answered in shop.answered.values())
    print(f"{len(shop.ledger.visible) / seconds:.0f} messages/s, the longest gap of a caller {gap:.2f} s")
    assert gap < at_this_load(LONGEST_GAP_SECONDS)
