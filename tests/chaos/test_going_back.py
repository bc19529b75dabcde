"""Back to a version that knows no bundles: its processes find a receipt for each delivery in flight.

The earlier version is the commit before bundles; MQ_UPGRADE_FROM names another one.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import aiohttp
import psycopg
import pytest

from mqbroker.embedded import commands
from tests.broker import databases, forks
from tests.broker.deliveries import their_time_passes
from tests.broker.load import Crowd
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.running import QUICK, RunningBroker
from tests.chaos.shops import PACE_SECONDS, Shop, everything
from tests.chaos.versions import checkout, replaced

BUNDLES = ("delivery/migrations/0010_bundle.py",)
SETTINGS = QUICK | {"MQBROKER_TRANSACTION_TIMEOUT_SECONDS": "600"}
GROUP = "billing-service"
MESSAGES = 400
TAKEN_APART = "SELECT EXISTS (SELECT FROM heartbeat WHERE bundles_at IS NULL) AND NOT EXISTS (SELECT FROM bundle)"


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of the version before bundles."""
    return checkout(tmp_path_factory.mktemp("earlier"), BUNDLES)


@pytest.fixture
def versions(prepared: str, earlier: Path, tmp_path: Path) -> Iterator[tuple[RunningBroker, RunningBroker]]:
    """A broker of this version that runs, and one of the earlier version for the same database and addresses."""
    ports, redis_url = [free_port(), free_port()], os.environ["REDIS_URL"]
    with databases.copied(prepared) as url, ExitStack() as ends:
        new = RunningBroker(tmp_path / "new", url, redis_url, SETTINGS, ports=ports)
        old = RunningBroker(tmp_path / "old", url, redis_url, SETTINGS, ports=ports, checkout=earlier)
        ends.callback(old.close)
        yield ends.enter_context(new), old
    assert "Traceback" not in old.log() + new.log()


def is_true(broker: RunningBroker, query: str) -> bool:
    with psycopg.connect(broker.database_url, autocommit=True) as database:
        [(found,)] = database.execute(query.encode()).fetchall()
    return bool(found)


async def received(crowd: Crowd, topic: str) -> dict[str, str]:
    """The bodies of the deliveries of one receive, by handle."""
    asked = {"topic": topic, "max_messages": 8, "invisible_seconds": 3600, "wait_seconds": 1}
    _, answer = await crowd.post(f"/v1/consumer-groups/{GROUP}/receive", asked)
    return {one["receipt_handle"]: one["message"]["body"] for one in answer["messages"]}


async def all_received(crowd: Crowd, topic: str, most: int) -> dict[str, str]:
    """As `received`, of as many receives as bring so many deliveries."""
    found: dict[str, str] = {}
    while len(found) < most:
        found |= await received(crowd, topic)
    return found


async def acked(crowd: Crowd, found: dict[str, str]) -> list[str]:
    """Acks deliveries, and returns the bodies of those whose ack was taken."""
    _, answer = await crowd.post(f"/v1/consumer-groups/{GROUP}/ack", {"receipt_handles": list(found)})
    return [found[one["receipt_handle"]] for one in answer["results"] if one["status"] == 200]


@pytest.mark.parametrize("migrates", [False, True], ids=["the-tables-stay", "the-tables-go-back"])
async def test_an_earlier_version_that_starts_after_a_crash_settles_what_is_in_flight(
    versions: tuple[RunningBroker, RunningBroker], orders: str, *, migrates: bool
) -> None:
    new, old = versions
    async with Crowd(new.urls) as crowd:
        await crowd.bulk({"op": "send", "topic": orders, "body": f"order {number}"} for number in range(MESSAGES))
        await asyncio.to_thread(eventually, lambda: is_true(new, "SELECT EXISTS (SELECT FROM heartbeat)"))
        found = await all_received(crowd, orders, MESSAGES)
    assert is_true(new, "SELECT EXISTS (SELECT FROM bundle)")
    for child in new.children:
        child.kill()
    if migrates:
        done = forks.run(commands.manage("migrate", "delivery", "0009"), new.environment, new.checkout)
        assert done.returncode == 0, done.stderr[-1000:]

    with old:
        if not migrates:
            await asyncio.to_thread(eventually, lambda: is_true(old, TAKEN_APART))
        first, left = (dict(list(found.items())[start::2]) for start in range(2))
        async with Crowd(old.urls) as crowd:
            assert await acked(crowd, first) == list(first.values())
            with psycopg.connect(old.database_url, autocommit=True) as database:
                database.execute("UPDATE receipt SET expires_at = now()")
                again = await all_received(crowd, orders, len(left))
                assert sorted(await acked(crowd, again)) == sorted(left.values())
                assert is_true(old, "SELECT NOT EXISTS (SELECT FROM receipt)")


async def test_processes_are_replaced_by_earlier_ones_under_load_and_nothing_comes_again_that_was_acked(
    versions: tuple[RunningBroker, RunningBroker], orders: str
) -> None:
    new, old = versions
    done, refused = Counter[str](), Counter[str]()
    is_open = True

    async def consume(crowd: Crowd) -> None:
        # A process that ends answers none, and what it handed out comes again.
        with suppress(aiohttp.ClientError, KeyError):
            if found := await received(crowd, orders):
                taken = await acked(crowd, found)
                done.update(taken)
                refused.update(set(found.values()).difference(taken))

    async def consume_on(crowd: Crowd) -> None:
        while is_open:
            await consume(crowd)
            await asyncio.sleep(PACE_SECONDS)

    async with Crowd(new.urls) as crowd:
        async with Shop(crowd, orders) as shop:
            consumers = [asyncio.create_task(consume_on(crowd)) for _ in range(8)]
            await replaced(new, old, shop)
        is_open = False
        await asyncio.gather(*consumers)
        with psycopg.connect(old.database_url, autocommit=True) as database:
            while shop.ledger.visible.keys() - done.keys():
                their_time_passes(database, GROUP)
                await consume(crowd)
        entries = await everything(crowd, orders)

    print(f"{len(done)} messages, {refused.total()} acks refused")
    assert shop.ledger.flaws(entries) == []
    assert max(done.values()) == 1
