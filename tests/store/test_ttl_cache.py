"""The cache of configuration: one look-up for all callers, and never a value older than a change of this process."""

import asyncio
import gc
from contextlib import suppress

from store.db.ttl_cache import TtlCache


class Shelf:
    """Where values are looked up; a look-up waits until it is released, and finds what was there when it began."""

    def __init__(self) -> None:
        self.thing: str | None = None
        self.look_ups = 0
        self.asked = asyncio.Semaphore(0)
        self.open = asyncio.Event()

    async def look_up(self) -> str | None:
        self.look_ups += 1
        found = self.thing
        self.asked.release()
        await self.open.wait()
        return found


async def test_however_many_ask_at_once_it_is_looked_up_once() -> None:
    cache: TtlCache[str, str] = TtlCache(60)
    shelf = Shelf()
    shelf.thing = "orders"
    asking = [asyncio.create_task(cache.get("key", shelf.look_up)) for _ in range(10)]
    await shelf.asked.acquire()

    shelf.open.set()

    assert await asyncio.gather(*asking) == ["orders"] * 10
    assert await cache.get("key", shelf.look_up) == "orders"
    assert shelf.look_ups == 1


async def test_what_was_changed_here_is_not_answered_by_an_older_look() -> None:
    cache: TtlCache[str, str] = TtlCache(60)
    shelf = Shelf()
    early = asyncio.create_task(cache.get("key", shelf.look_up))
    await shelf.asked.acquire()

    shelf.thing = "orders"
    cache.forget("key")
    late = asyncio.create_task(cache.get("key", shelf.look_up))
    await shelf.asked.acquire()
    shelf.open.set()

    assert (await early, await late) == (None, "orders")
    assert await cache.get("key", shelf.look_up) == "orders"
    assert shelf.look_ups == 2


async def test_what_was_looked_up_before_a_change_is_not_remembered() -> None:
    cache: TtlCache[str, str] = TtlCache(60)
    shelf = Shelf()
    shelf.thing = "old"
    early = asyncio.create_task(cache.get("key", shelf.look_up))
    await shelf.asked.acquire()

    shelf.thing = "new"
    cache.forget("key")
    shelf.open.set()

    assert await early == "old"
    assert await cache.get("key", shelf.look_up) == "new"


async def test_what_is_not_found_is_looked_up_again() -> None:
    cache: TtlCache[str, str] = TtlCache(60)
    shelf = Shelf()
    shelf.open.set()

    assert await cache.get("key", shelf.look_up) is None
    shelf.thing = "orders"

    assert await cache.get("key", shelf.look_up) == "orders"


async def test_a_value_near_its_end_is_looked_up_again_while_the_old_one_is_answered() -> None:
    now = 0.0
    cache: TtlCache[str, str] = TtlCache(60, clock=lambda: now)
    shelf = Shelf()
    shelf.thing = "old"
    shelf.open.set()
    await cache.get("key", shelf.look_up)
    shelf.thing = "new"
    shelf.open.clear()

    now = 46.0
    answered = [cache.known("key") for _ in range(10)]
    await shelf.asked.acquire()
    shelf.open.set()
    await cache.get("another key", shelf.look_up)

    now = 61.0
    assert (answered, cache.known("key"), shelf.look_ups) == (["old"] * 10, "new", 3)


async def test_a_value_that_is_gone_when_it_is_looked_up_again_is_dropped() -> None:
    now = 0.0
    cache: TtlCache[str, str] = TtlCache(60, clock=lambda: now)
    shelf = Shelf()
    shelf.thing = "orders"
    shelf.open.set()
    await cache.get("key", shelf.look_up)
    shelf.thing = None

    now = 46.0
    cache.known("key")
    await cache.get("another key", shelf.look_up)

    assert cache.known("key") is None


async def test_the_time_of_a_value_counts_from_the_beginning_of_its_look_up() -> None:
    """What is answered may be as old as that: a change made meanwhile holds when the time is over."""
    now = 0.0
    cache: TtlCache[str, str] = TtlCache(60, clock=lambda: now)
    shelf = Shelf()
    shelf.thing = "old"
    asking = asyncio.create_task(cache.get("key", shelf.look_up))
    await shelf.asked.acquire()

    now = 40.0
    shelf.open.set()
    assert await asking == "old"

    assert cache.known("key") == "old"
    now = 60.0
    assert cache.known("key") is None


async def test_a_look_up_that_fails_after_its_caller_was_cancelled_is_no_error_of_the_process() -> None:
    cache: TtlCache[str, str] = TtlCache(60)
    shelf = Shelf()
    problems: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))

    async def failing() -> str | None:
        await shelf.look_up()
        raise ConnectionError("the pool is closed")

    caller = asyncio.create_task(cache.get("key", failing))
    await shelf.asked.acquire()
    caller.cancel()
    with suppress(asyncio.CancelledError):
        await caller
    shelf.open.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gc.collect()

    assert problems == []


async def test_a_value_that_cannot_be_looked_up_is_as_old_as_it_was_found_however_often_it_is_believed_again() -> None:
    now = 0.0
    cache: TtlCache[str, list[str]] = TtlCache(2, lambda: now)

    async def find() -> list[str]:
        return ["orders"]

    async def believe() -> list[str] | None:
        return cache.last("key", 60)

    await cache.get("key", find)
    while (believed := await cache.get("key", believe)) is not None:
        assert believed == ["orders"]
        assert now <= 60
        now += 3

    assert now == 63
    assert await cache.get("key", find) == ["orders"]
    assert cache.last("key", 60) == ["orders"]
