"""Migrations beside a broker under load: what they wait for holds up no writer for long, and they come through."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from mqbroker_client import Admin

from mqbroker.embedded import commands
from tests.broker import databases, forks
from tests.broker.load import Crowd
from tests.broker.polling import eventually
from tests.broker.running import QUICK, RunningBroker
from tests.chaos.shops import Shop, everything

LATER_RELEASE = "tests.chaos.later.settings"
SETTINGS = QUICK | {"MQBROKER_TRANSACTION_TIMEOUT_SECONDS": "600"}
DUMP_SECONDS = 8.0
# Promised are 2 s. A machine that does other work beside the tests may need longer; the dump takes longer still.
LONGEST_GAP_SECONDS = 5.0
WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
CONSTRAINTS = (
    "SELECT count(*) FROM pg_constraint WHERE conname = 'operation_later' AND conrelid = 'operation'::regclass"
)


@pytest.fixture
def running(prepared: str, tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker on a database of its own."""
    with (
        databases.copied(prepared) as url,
        RunningBroker(tmp_path, url, os.environ["REDIS_URL"], SETTINGS, tasks=False) as broker,
    ):
        yield broker


async def test_a_migration_that_has_to_wait_for_a_dump_holds_up_no_writer(running: RunningBroker) -> None:
    Admin(running.client()).create_topic("orders", queues=4)
    async with Crowd(running.urls) as crowd:
        async with Shop(crowd, "orders") as shop:
            await shop.has_acknowledged(100)
            with psycopg.connect(running.database_url) as dump:
                dump.execute("LOCK TABLE operation IN ACCESS SHARE MODE")
                migration = asyncio.create_task(asyncio.to_thread(migrate, running))
                await asyncio.to_thread(eventually, lambda: dump.execute(WAITS).fetchone() != (0,), 120)
                gap = await longest_gap(shop, DUMP_SECONDS)
                assert not migration.done()
            await migration
            await shop.has_acknowledged(100)
        found = await everything(crowd, "orders")

    assert gap < LONGEST_GAP_SECONDS
    assert shop.ledger.flaws(found) == []
    with psycopg.connect(running.database_url) as database:
        assert database.execute(CONSTRAINTS).fetchone() == (1,)


def migrate(running: RunningBroker) -> None:
    """As the first process of a later release does, beside those of this one."""
    environment = {**running.environment, "DJANGO_SETTINGS_MODULE": LATER_RELEASE}
    words = commands.manage("prepare")
    done = forks.run(words, environment)
    assert done.returncode == 0, done.stderr[-1000:]


async def longest_gap(shop: Shop, seconds: float) -> float:
    """The longest time between two rollbacks: each writes to the table that the migration waits for."""
    began = last = time.monotonic()
    longest, count = 0.0, len(shop.ledger.rolled_back)
    while (now := time.monotonic()) < began + seconds:
        longest = max(longest, now - last)
        if len(shop.ledger.rolled_back) > count:
            last, count = now, len(shop.ledger.rolled_back)
        await asyncio.sleep(0.02)
    return longest
