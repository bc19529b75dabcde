"""The runtime of a process: what was closed stays closed, and each cell has parts of its own."""

import asyncio
from collections.abc import Iterator

import pytest

from store.commit.stalled import Watch
from store.commit.writer import Writers
from store.db.connections import Reads
from store.errors import CellAway, SystemBusy
from store.naming import topics
from store.notices.notifier import Wakeups
from store.process import runtime
from store.process.runtime import Runtime
from tests.broker.polling import eventually
from tests.store.keeper import Keeper

SESSIONS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'mqbroker-%%'"


def test_work_that_outlives_its_runtime_is_refused_and_opens_no_connection(keeper: Keeper) -> None:
    keeper.send("orders", "first")

    keeper.do(runtime.current().close((Writers, Watch, Wakeups, Reads)))

    with pytest.raises(SystemBusy, match="This process of the broker is stopping"):
        keeper.do(topics.look_up("another"))
    with pytest.raises(SystemBusy, match="This process of the broker is stopping"):
        keeper.send("orders", "second")
    eventually(lambda: keeper.sql(SESSIONS, *()) == [])


def test_a_read_that_waits_for_the_end_of_the_pool_opens_no_other(keeper: Keeper) -> None:
    keeper.send("orders", "first")

    async def late() -> list[object]:
        reads = runtime.part(Reads)
        ended = asyncio.ensure_future(reads.close())
        return await asyncio.gather(ended, *(reads.pool() for _ in range(3)), return_exceptions=True)

    refused = keeper.do(late())[1:]

    assert [(type(one), str(one)[:22]) for one in refused] == [(SystemBusy, "This process of the br")] * 3


class Kept:
    """A part, and the cell that it was made in."""

    def __init__(self) -> None:
        self.cell = runtime.here().cell


@pytest.fixture
def two_cells() -> Iterator[None]:
    """A process of two cells, without a database."""
    made = Runtime()
    made.add(Runtime(1, "c1", "postgresql://nowhere/one"))
    with runtime.installed(made):
        yield


@pytest.mark.usefixtures("two_cells")
def test_work_that_has_chosen_no_cell_is_an_error_where_there_are_several() -> None:
    with pytest.raises(RuntimeError, match="this work has chosen no cell"):
        runtime.part(Kept)
    with pytest.raises(CellAway, match="This process has not loaded the cell 2 yet"), runtime.in_cell(2):
        pass


@pytest.mark.usefixtures("two_cells")
def test_a_part_is_that_of_the_cell_which_the_work_has_chosen_or_which_is_named() -> None:
    with runtime.in_cell(1):
        found = runtime.part(Kept)
        named = runtime.part_of(0, Kept)

    assert (found.cell, named.cell) == (1, 0)
    assert runtime.part_of(1, Kept) is found
    assert runtime.control(Kept) is named


@pytest.mark.usefixtures("two_cells")
def test_a_task_of_a_cell_works_for_it_whichever_work_needs_it_first() -> None:
    cells: list[int] = []

    async def work() -> None:
        cells.append(runtime.part(Kept).cell)

    async def begin() -> None:
        with runtime.in_cell(1):
            await runtime.of(0).task(work(), "work of the control")
            await asyncio.create_task(work())
        runtime.begin()
        with pytest.raises(RuntimeError, match="this work has chosen no cell"):
            await asyncio.create_task(work())

    asyncio.run(begin())

    assert cells == [0, 1]


def test_with_one_cell_there_is_nothing_to_choose() -> None:
    with runtime.installed(Runtime()):
        assert runtime.part(Kept) is runtime.control(Kept) is runtime.part_of(None, Kept)
