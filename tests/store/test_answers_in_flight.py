"""The budget of answers: who may hold how much of it, and whose turn is next."""

import asyncio
from collections.abc import Iterator

import pytest
from django.conf import settings

from store.errors import SystemBusy
from store.process import runtime
from store.process.answer_budget import LEAST_PAGE_BYTES, Hold, answers
from store.process.budget import SMALL_BYTES
from store.process.runtime import Runtime

MEBIBYTE = 1024 * 1024


@pytest.fixture(autouse=True)
def process() -> Iterator[None]:
    """A process that holds no answers."""
    runtime.install(Runtime())
    yield
    runtime.install(None)


def held(key: str, size: int) -> Hold:
    """An answer of this size that its caller does not read."""
    hold = Hold(key)
    hold.set(size)
    return hold


async def reads(key: str, *, may_be_small: bool = False) -> asyncio.Task[Hold]:
    """A read that has its page, or waits for it."""

    async def read() -> Hold:
        hold = Hold(key)
        await hold.room(may_be_small=may_be_small)
        hold.page()
        return hold

    task = asyncio.create_task(read())
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def test_a_reader_that_is_alone_has_a_whole_page() -> None:
    hold = Hold("alone")
    await hold.room()

    assert hold.page() == settings.MAX_RECEIVE_BYTES


async def test_one_key_leaves_room_for_others_however_many_of_its_callers_read_nothing() -> None:
    slow = [await reads("slow") for _ in range(50)]

    other = await reads("other")

    assert 0 < sum(task.done() for task in slow) < 50
    assert answers().held < settings.ANSWERS_IN_FLIGHT_BYTES * 7 // 8
    assert other.done()
    for task in slow:
        task.cancel()


async def test_reads_wait_in_turns_key_after_key_and_of_one_key_in_their_order() -> None:
    full = held("slow", settings.ANSWERS_IN_FLIGHT_BYTES)
    order: list[str] = []

    async def read(key: str, name: str) -> None:
        with Hold(key) as hold:
            await hold.room()
            order.append(name)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as readers:
        for key, name in (("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1"), ("b", "b2")):
            readers.create_task(read(key, name))
        await asyncio.sleep(0.01)
        assert order == []
        full.set(settings.ANSWERS_IN_FLIGHT_BYTES * 7 // 8 - LEAST_PAGE_BYTES)

    assert order == ["a1", "b1", "c1", "a2", "b2", "a3"]


async def test_a_page_of_small_messages_has_room_where_others_hold_everything() -> None:
    held("slow", 2 * settings.ANSWERS_IN_FLIGHT_BYTES)

    small = Hold("other")
    await small.room(may_be_small=True)

    assert small.page() == SMALL_BYTES
    small.is_large = True
    with pytest.raises(SystemBusy, match="Answers that callers have not read yet fill"):
        await small.room(may_be_small=True)


async def test_what_is_read_out_of_the_reserve_is_bounded_too() -> None:
    held("slow", 2 * settings.ANSWERS_IN_FLIGHT_BYTES)

    tasks = [await reads("other", may_be_small=True) for _ in range(100)]

    assert sum(task.done() for task in tasks) == settings.ANSWERS_IN_FLIGHT_BYTES // 8 // SMALL_BYTES
    for task in tasks:
        task.cancel()


async def test_a_reader_that_hangs_up_while_it_waits_leaves_nothing_behind() -> None:
    full = held("slow", settings.ANSWERS_IN_FLIGHT_BYTES)
    waiting = [await reads(key) for key in ("a", "a", "b")]
    waiting[0].cancel()
    # Its turn comes in the same moment.
    full.set(0)
    waiting[2].cancel()
    await asyncio.wait(waiting)

    with waiting[1].result():
        assert answers().held > 0
    assert answers().held == 0
    assert (await reads("b")).done()
