"""Promises of the slots: an endpoint never has more calls under way than its limit, and no slot is ever lost."""

import asyncio
import random

import pytest

from webhooks.slots import SMALL_BYTES, Allowance, Slots


class Calls:
    """Counts what is under way."""

    def __init__(self) -> None:
        self.now = self.most = self.done = 0

    async def call(self, slots: Slots, endpoint: str, limit: int, end: asyncio.Event) -> None:
        async with slots.hold(endpoint, limit):
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                await end.wait()
            finally:
                self.now -= 1
        self.done += 1


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_endpoint_has_at_most_its_limit_under_way() -> None:
    slots, calls, end = Slots(), Calls(), asyncio.Event()
    tasks = [asyncio.create_task(calls.call(slots, "shop", 3, end)) for _ in range(10)]
    await settle()
    assert calls.now == 3

    end.set()
    await asyncio.gather(*tasks)

    assert (calls.most, calls.done) == (3, 10)


async def test_a_full_endpoint_holds_up_no_other() -> None:
    slots, slow, quick, never, end = Slots(), Calls(), Calls(), asyncio.Event(), asyncio.Event()
    held = [asyncio.create_task(slow.call(slots, "slow", 1, never)) for _ in range(5)]
    await settle()
    end.set()

    await asyncio.wait_for(quick.call(slots, "quick", 1, end), 1)

    assert quick.done == 1
    for task in held:
        task.cancel()


async def test_who_waits_longest_is_next() -> None:
    slots, order = Slots(), list[int]()

    async def call(number: int) -> None:
        async with slots.hold("shop", 1):
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(call(number) for number in range(20)))

    assert order == list(range(20))


async def test_a_higher_limit_admits_those_who_wait_and_a_lower_one_lets_the_others_end() -> None:
    slots, calls, end = Slots(), Calls(), asyncio.Event()
    tasks = [asyncio.create_task(calls.call(slots, "shop", 1, end)) for _ in range(5)]
    await settle()
    assert calls.now == 1

    tasks.append(asyncio.create_task(calls.call(slots, "shop", 4, end)))
    await settle()
    assert calls.now == 4

    tasks.append(asyncio.create_task(calls.call(slots, "shop", 2, end)))
    await settle()
    assert calls.now == 4

    end.set()
    await asyncio.gather(*tasks)
    assert calls.done == 7


async def test_a_call_that_fails_gives_its_slot_back() -> None:
    slots = Slots()
    with pytest.raises(ZeroDivisionError):
        async with slots.hold("shop", 1):
            _ = 1 / 0

    async with asyncio.timeout(1), slots.hold("shop", 1):
        pass


@pytest.mark.parametrize("seed", range(20))
async def test_no_slot_is_lost_or_given_twice_however_calls_are_cancelled(seed: int) -> None:
    slots, chance, now, most = Slots(), random.Random(seed), 0, 0

    async def call() -> None:
        nonlocal now, most
        async with slots.hold("shop", 3):
            now += 1
            most = max(most, now)
            try:
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
            finally:
                now -= 1

    tasks = [asyncio.create_task(call()) for _ in range(200)]
    for _ in range(60):
        for task in chance.sample(tasks, 3):
            task.cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)

    assert (now, most <= 3) == (0, True)
    async with asyncio.timeout(1):  # All three slots are there again.
        async with slots.hold("shop", 3), slots.hold("shop", 3), slots.hold("shop", 3):
            pass


MIB = 1024 * 1024


async def held(allowance: Allowance, size: int, end: asyncio.Event, calls: Calls, wait_seconds: float = 60) -> None:
    async with allowance.hold(size, wait_seconds):
        calls.now += 1
        await end.wait()
        calls.now -= 1


async def test_bytes_that_are_held_are_at_most_the_allowance_and_small_ones_wait_for_none() -> None:
    allowance, calls, end = Allowance(10 * MIB), Calls(), asyncio.Event()
    large = [asyncio.create_task(held(allowance, 4 * MIB, end, calls)) for _ in range(5)]
    small = [asyncio.create_task(held(allowance, SMALL_BYTES, end, calls)) for _ in range(5)]
    await settle()
    assert calls.now == 2 + 5

    end.set()
    await asyncio.gather(*large, *small)
    assert calls.now == 0


async def test_what_is_larger_than_the_allowance_is_held_alone() -> None:
    allowance, calls, end = Allowance(MIB), Calls(), asyncio.Event()
    tasks = [asyncio.create_task(held(allowance, 5 * MIB, end, calls)) for _ in range(2)]
    await settle()
    assert calls.now == 1

    end.set()
    await asyncio.gather(*tasks)


async def test_a_wait_that_ends_without_bytes_delays_none_behind_it() -> None:
    allowance, calls, end = Allowance(10 * MIB), Calls(), asyncio.Event()
    holder = asyncio.create_task(held(allowance, 6 * MIB, end, calls))
    await settle()
    too_long = asyncio.create_task(held(allowance, 8 * MIB, end, calls, wait_seconds=0.05))
    goes_away = asyncio.create_task(held(allowance, 8 * MIB, end, calls))
    behind = asyncio.create_task(held(allowance, 3 * MIB, end, calls))
    await settle()
    assert calls.now == 1

    goes_away.cancel()
    with pytest.raises(TimeoutError):
        await too_long
    await settle()

    assert calls.now == 2
    end.set()
    await asyncio.gather(holder, behind)
