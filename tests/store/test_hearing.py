"""Notices of a channel are read as long as they stay few: any role that may connect may notify it."""

import asyncio
import selectors
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from store.db.patience import PatientAsyncConnection
from store.notices import notifier
from store.notices.caches import ROUND_SECONDS
from store.notices.hearing import BURST_BYTES, Flooded, Hearing
from store.process import runtime
from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.control.operators import Operator
from tests.store.keeper import Keeper

NOTIFY = "SELECT pg_notify(%s, n || repeat('x', %s)) FROM generate_series(1, %s) AS n"
# What no process of the broker says, and some of what a hostile one would.
NONSENSE = ("", "x", "x;y", "abc;7", "abc;7:-5", "abc;7:x", ";;", "changed", "changed:x:1", "dropped:::", "a:b:c:d:e:f")


@pytest.fixture
def notifying(database_url: str) -> Iterator[psycopg.Connection]:
    """A session that notifies as it likes."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


async def heard(
    url: str, channel: str, notifying: psycopg.Connection, size: int, number: int, *, is_late: bool = False
) -> int:
    """How many notices of a size are heard, of this number; `is_late`: behind a statement during which they come."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        hearing = Hearing(connection)
        await hearing.execute(f"LISTEN {channel}".encode())
        notifying.execute(NOTIFY, [channel, size, number])
        count = 0
        if is_late:
            # The server sends what waits before it answers.
            await hearing.execute(b"SELECT pg_sleep(0.1)")
        async for _ in hearing.notices(30):
            count += 1
            if count == number:
                return count
    return count


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize(("size", "number"), [(0, BURST_BYTES // 200), (7_000, BURST_BYTES // 8_000)])
def test_what_a_busy_broker_says_at_once_is_heard(
    keeper: Keeper, database_url: str, notifying: psycopg.Connection, size: int, number: int, is_late: bool
) -> None:
    channel = characters.name("calm").replace("-", "_")
    assert keeper.do(heard(database_url, channel, notifying, size, number, is_late=is_late)) == number


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize(("size", "number"), [(0, BURST_BYTES // 20), (7_000, BURST_BYTES // 1_000)])
def test_a_flood_ends_the_listening_whether_its_notices_are_large_or_many(
    keeper: Keeper, database_url: str, notifying: psycopg.Connection, size: int, number: int, is_late: bool
) -> None:
    channel = characters.name("flood").replace("-", "_")
    with pytest.raises(Flooded):
        keeper.do(heard(database_url, channel, notifying, size, number, is_late=is_late))


class Looks(selectors.EpollSelector):
    """A loop's selector that counts how often the loop waits, and so is woken."""

    number = 0

    def select(self, timeout: float | None = None) -> Any:
        self.number += 1
        return super().select(timeout)


def test_a_listener_is_not_woken_until_something_comes_or_its_time_is_over(database_url: str) -> None:
    looks = Looks()

    async def listen() -> int:
        async with await PatientAsyncConnection.connect(database_url, autocommit=True) as connection:
            hearing = Hearing(connection)
            await hearing.execute(b"LISTEN silence")
            before = looks.number
            assert [notice async for notice in hearing.notices(1)] == []
            return looks.number - before

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(looks)) as runner:
        assert runner.run(listen()) <= 3


def test_a_notice_that_says_nothing_known_ends_no_listening(broker: RunningBroker) -> None:
    operator = Operator(broker.url, API_KEY)
    sessions = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"
    with psycopg.connect(broker.direct_url, autocommit=True) as connection:

        def listening() -> set[int]:
            return {pid for (pid,) in connection.execute(sessions, ["mqbroker-listener"])}

        # Other processes may listen, too, and come and go.
        eventually(lambda: len(listening()) >= len(broker.webs))
        before = listening()
        for channel in ("mqbroker_visible", "mqbroker_changed"):
            for payload in NONSENSE:
                connection.execute("SELECT pg_notify(%s, %s)", [channel, payload])
        # The change is confirmed by each process that listens, behind all those notices.
        topic = characters.name("orders")
        assert operator.put(f"/v1/topics/{topic}", queues=1).status == 201

        assert len(listening() & before) >= len(broker.webs)


CHANGE = "SELECT pg_notify('mqbroker_changed', 'changed:ab:' || %s)"
CHANGES = 400


class Cache:
    """Counts how often the process drops its caches."""

    def __init__(self) -> None:
        self.drops = 0
        self._dropped = asyncio.Event()

    def forget_all(self) -> None:
        self.drops += 1
        self._dropped.set()

    async def is_dropped_more_than(self, drops: int) -> None:
        """Waits until the caches have been dropped more often than that."""
        while self.drops <= drops:
            self._dropped.clear()
            await self._dropped.wait()


def test_many_announced_changes_drop_the_caches_once_in_a_while_and_a_later_one_drops_them_again(
    keeper: Keeper, notifying: psycopg.Connection
) -> None:
    async def drops_of_a_flood() -> tuple[int, float]:
        cache = runtime.control(Cache)
        notifier.start()
        # A process that begins to listen drops its caches.
        await cache.is_dropped_more_than(0)
        before, began = cache.drops, time.monotonic()
        for number in range(CHANGES):
            await asyncio.to_thread(notifying.execute, CHANGE, [number])
        await cache.is_dropped_more_than(before)
        await asyncio.sleep(2 * ROUND_SECONDS)
        flooded, seconds = cache.drops - before, time.monotonic() - began
        await asyncio.to_thread(notifying.execute, CHANGE, [CHANGES])
        await cache.is_dropped_more_than(before + flooded)
        return flooded, seconds

    drops, seconds = keeper.do(drops_of_a_flood())

    assert 0 < drops <= seconds / ROUND_SECONDS + 1
    assert drops < CHANGES / 2
