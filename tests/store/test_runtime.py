"""The runtime of a process that ends: what was closed stays closed."""

import asyncio

import pytest

from store.commit.stalled import Watch
from store.commit.writer import Writers
from store.db.connections import Reads
from store.errors import SystemBusy
from store.naming import topics
from store.notices.notifier import Wakeups
from store.process import runtime
from tests.broker.polling import eventually
from tests.store.keeper import Keeper

SESSIONS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'mqbroker-%%'"


def test_work_that_outlives_its_runtime_is_refused_and_opens_no_connection(keeper: Keeper) -> None:
    keeper.send("orders", "first")

    keeper.do(runtime.current().close((Writers, Watch, Wakeups, Reads)))

    with pytest.raises(SystemBusy, match="This process is ending"):
        keeper.do(topics.look_up("another"))
    with pytest.raises(SystemBusy, match="This process is ending"):
        keeper.send("orders", "second")
    eventually(lambda: keeper.sql(SESSIONS, *()) == [])


def test_a_read_that_waits_for_the_end_of_the_pool_opens_no_other(keeper: Keeper) -> None:
    keeper.send("orders", "first")

    async def late() -> list[object]:
        reads = runtime.part(Reads)
        ended = asyncio.ensure_future(reads.close())
        return await asyncio.gather(ended, *(reads.pool() for _ in range(3)), return_exceptions=True)

    refused = keeper.do(late())[1:]

    assert [(type(one), str(one)[:22]) for one in refused] == [(SystemBusy, "This process is ending")] * 3
