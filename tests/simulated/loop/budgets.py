"""The budget of answers: reads take turns as it fills, and what they held is given back whatever became of them."""

import asyncio

from store.errors import SystemBusy
from store.process import runtime
from store.process.answer_budget import LEAST_PAGE_BYTES, ROOM_SECONDS, Answers, Hold
from store.process.runtime import Runtime
from tests.simulated.loop.exploring import Scenario
from tests.simulated.loop.virtual import Broken, loop, require
from tests.simulated.loop.writing import WEB

MEBIBYTE = 1024 * 1024
SETTINGS = {
    "ANSWERS_IN_FLIGHT_BYTES": 8 * MEBIBYTE,
    "MAX_RECEIVE_BYTES": 4 * MEBIBYTE,
    "MAX_MESSAGE_BYTES": 1 * MEBIBYTE,
}
READS, READERS = 3, 7
PAUSES = (0.0, 0.01, 0.4, 2.5)
SLACK_SECONDS = 0.01


async def budget() -> None:
    """Readers of three keys, some of which hang up or send slowly."""
    runtime.install(Runtime())
    work = [loop().of_process(WEB, reader(number)) for number in range(READERS)]
    watching = asyncio.create_task(watch(), name="watch")
    await asyncio.gather(*work)
    watching.cancel()
    [seen] = await asyncio.gather(watching, return_exceptions=True)
    if isinstance(seen, Broken):
        raise seen
    answers = runtime.control(Answers)
    require(answers.held == 0, "bytes are counted for no answer", answers.held)
    require(answers._small == 0, "the reserve is not whole", answers._small)
    require(not answers._by_key and not answers._turns, "a key is remembered", answers._by_key, answers._turns)


async def reader(number: int) -> None:
    """Some reads of one key, one after the other."""
    chance = loop().chance
    for _ in range(READS):
        hangs_up = (None, None, 0.0, 0.3)[chance.choose(4)]
        began = loop().time()
        try:
            async with asyncio.timeout(hangs_up):
                await read(f"key {number % 3}")
        except TimeoutError:
            require(hangs_up is not None, "a time-out that is nobody's")
        except SystemBusy:
            waited = loop().time() - began
            require(waited >= ROOM_SECONDS - SLACK_SECONDS, "a read is refused before its time", f"{waited:.2f} s")


async def read(key: str) -> None:
    """One read: it waits for room, takes a page, and holds it until it is sent."""
    chance = loop().chance
    with Hold(key) as hold:
        began = loop().time()
        try:
            await hold.room(may_be_small=chance.one_in(3))
        finally:
            waited = loop().time() - began
            require(waited <= ROOM_SECONDS + SLACK_SECONDS, "a read has waited for too long", f"{waited:.2f} s")
        most = hold.page()
        await asyncio.sleep(PAUSES[chance.choose(3)])
        hold.set(most * (1 + chance.choose(3)) // 3)
        await asyncio.sleep(PAUSES[chance.choose(4)])


async def watch() -> None:
    """At each moment: no more is held than the budget and a page of each, and nobody waits beside room for him."""
    while True:
        await asyncio.sleep(0.005)
        answers = runtime.control(Answers)
        most = SETTINGS["ANSWERS_IN_FLIGHT_BYTES"] + READERS * LEAST_PAGE_BYTES
        require(0 <= answers.held <= most, "more is held than the budget", answers.held)
        waiting = [key for key, turns in answers._turns.items() if any(not turn.done() for turn in turns)]
        beside = [key for key in waiting if not answers.is_short(key)]
        require(not beside, "a read waits beside room for it", beside)


SCENARIOS = (Scenario("answer-budget", "Reads that take turns at the bytes of answers.", budget, SETTINGS),)
