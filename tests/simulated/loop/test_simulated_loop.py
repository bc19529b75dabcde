"""The simulated loop itself: a seed is one run to the byte, time is a number, and a failure is made short."""

import asyncio
import os
import subprocess
import sys
import threading
import time

import pytest

from mqbroker.embedded.commands import ROOT
from tests.simulated.loop import threads
from tests.simulated.loop.exploring import Scenario, digest, explore, prepared, report, run, trimmed
from tests.simulated.loop.scenarios import SCENARIOS
from tests.simulated.loop.virtual import loop, process, require

SEEDS = range(11, 14)
DIGEST = """
import django
django.setup()
from tests.simulated.loop.exploring import digest, prepared, run
from tests.simulated.loop.scenarios import SCENARIOS
for name in {names!r}:
    with prepared(SCENARIOS[name]):
        print(name, digest([run(SCENARIOS[name], seed, traced=True) for seed in {seeds!r}]))
"""


def scenario(play: object) -> Scenario:
    return Scenario("of the test", "", play)  # type: ignore[arg-type]  # a coroutine function of each test


def test_the_same_seed_gives_the_same_bytes_in_each_process() -> None:
    names = sorted(SCENARIOS)
    here = {}
    for name in names:
        with prepared(SCENARIOS[name]):
            here[name] = digest([run(SCENARIOS[name], seed, traced=True) for seed in SEEDS])

    code = DIGEST.format(names=names, seeds=list(SEEDS))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "client")])}
    environment |= {"PYTHONHASHSEED": "123", "DJANGO_SETTINGS_MODULE": "mqbroker.settings"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )

    assert dict(line.split() for line in done.stdout.splitlines()) == here


def test_different_seeds_are_different_runs() -> None:
    explored = explore(SCENARIOS["answer-budget"], 1, 10)

    assert explored.distinct == explored.runs == 10


def test_an_hour_takes_no_time_and_the_clock_of_the_product_shows_it() -> None:
    began = time.perf_counter()
    seen: list[float] = []

    async def play() -> None:
        before = time.monotonic()
        await asyncio.sleep(3600)
        seen.append(time.monotonic() - before)

    assert explore(scenario(play), 1, 1).failure is None
    assert seen[0] == pytest.approx(3600, abs=0.01)
    assert time.perf_counter() - began < 600


def test_each_order_of_two_callbacks_comes() -> None:
    orders = set()

    async def play() -> None:
        order: list[int] = []
        await asyncio.gather(*(_note(order, number) for number in range(2)))
        orders.add(tuple(order))

    explore(scenario(play), 1, 40)

    assert orders == {(0, 1), (1, 0)}


async def _note(order: list[int], number: int) -> None:
    await asyncio.sleep(0)
    order.append(number)


def test_a_process_that_is_stopped_does_nothing_until_it_is_resumed() -> None:
    async def ticks(seen: list[float]) -> None:
        require(process.get() == "web", "a task of another process")
        while True:
            await asyncio.sleep(1)
            seen.append(loop().time())

    async def play() -> None:
        seen: list[float] = []
        began = loop().time()
        loop().of_process("web", ticks(seen))
        await asyncio.sleep(2.5)
        loop().stop_process("web")
        await asyncio.sleep(10)
        require(len(seen) == 2, "a stopped process has run", seen)
        loop().resume_process("web")
        await asyncio.sleep(0.5)
        require(len(seen) == 3 and seen[2] - began >= 12.5, "a resumed process does not go on", seen)

    assert explore(scenario(play), 1, 10).failure is None


def test_a_thread_of_the_machine_sleeps_as_ever_beside_a_run() -> None:
    slept: list[str] = []

    def sleeps() -> None:
        time.sleep(0)
        slept.append("as ever")

    async def play() -> None:
        with threads.replaced():
            other = threading.Thread(target=sleeps)
            other.start()
            other.join()

    assert run(scenario(play), 1).failure == ""
    assert slept == ["as ever"]


def test_what_waits_for_ever_is_a_failure_that_names_it() -> None:
    async def play() -> None:
        await asyncio.gather(asyncio.create_task(asyncio.Event().wait(), name="a lost wake-up"))

    failure = explore(scenario(play), 1, 1).failure

    assert failure is not None
    assert "something waits for ever" in failure.failure
    assert "a lost wake-up" in failure.failure


def test_an_exception_that_nobody_asks_for_is_a_failure() -> None:
    async def fails() -> None:
        raise ValueError("unseen")

    async def play() -> None:
        task = asyncio.create_task(fails(), name="background")
        await asyncio.wait([task])

    failure = explore(scenario(play), 1, 1).failure

    assert failure is not None
    assert "an exception that nobody saw" in failure.failure


def test_a_failure_is_told_with_a_short_schedule_that_repeats_it() -> None:
    async def play() -> None:
        chance = loop().chance
        choices = [chance.choose(4) for _ in range(30)]
        loop().note("chose", choices)
        require(not (choices[7] == 2 and choices[20]), "two choices meet", choices[7], choices[20])

    of_test = scenario(play)
    failure = explore(of_test, 1, 500).failure

    assert failure is not None
    assert sum(map(bool, failure.schedule)) == 2
    with prepared(of_test):
        again = run(of_test, failure.seed, trimmed(failure.schedule), traced=True)
    assert report("of the test", again) == report("of the test", failure)
    assert f"--seed {failure.seed}" in report("of the test", failure)
