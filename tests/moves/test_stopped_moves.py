"""Splits beside producers that go on: whole, killed after each step and finished, or taken back. Nothing is lost."""

import asyncio
import time

import pytest
from mqbroker_client import Admin

from tests.broker import characters
from tests.broker.load import Crowd
from tests.broker.polling import at_this_load
from tests.broker.prepared_servers import url_in
from tests.broker.running import RunningBroker
from tests.chaos.shops import Shop, everything
from tests.moves.ground import ENDED_SECONDS, Ground

ACKNOWLEDGED = 200


def _split(ground: Ground, home: str) -> list[str]:
    standby = ground.standby()
    url = url_in(standby, "mqbroker_c1")
    return ["split", "c1", "--into", characters.name("c"), "--standby", url, "--home", home]


async def _beside_producers(ground: Ground, broker: RunningBroker, step: str | None, then: str | None) -> list[str]:
    """What is wrong with a topic that moves and with one that stays, behind a split beside their producers."""
    moving, staying = characters.name("moving"), characters.name("staying")
    for topic in (moving, staying):
        await asyncio.to_thread(Admin(broker.client()).create_topic, topic, queues=4)
    # Here, for the system ends a server with the thread that began it.
    words = _split(ground, moving)
    async with Crowd(broker.urls) as crowd:
        async with Shop(crowd, moving) as shop, Shop(crowd, staying) as beside:
            for each in (shop, beside):
                await each.has_acknowledged(ACKNOWLEDGED)
            if step is None:
                await asyncio.to_thread(ground.cells, *words)
            else:
                await asyncio.to_thread(ground.kill_after, step, *words)
                began = time.monotonic()
                await asyncio.to_thread(ground.cells, str(then))
                assert time.monotonic() - began < at_this_load(ENDED_SECONDS)
            for each in (shop, beside):
                each.forget_acknowledged()
                await each.has_acknowledged(ACKNOWLEDGED)
        flaws = [flaw for each in (shop, beside) for flaw in each.ledger.flaws(await everything(crowd, each.topic))]
    stored = ground.stored(moving)
    assert (words[3] in stored) is (then != "undo")
    return flaws


async def test_a_split_beside_producers_loses_nothing_and_doubles_nothing(
    ground: Ground, broker: RunningBroker
) -> None:
    assert await _beside_producers(ground, broker, None, None) == []


# Some stand for all.
LONG = pytest.mark.long


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("fenced", marks=LONG),
        pytest.param("replayed", marks=LONG),
        "promoting",
        pytest.param("promoted", marks=LONG),
        pytest.param("divided", marks=LONG),
        "opened",
    ],
)
async def test_a_split_that_was_killed_is_finished(ground: Ground, broker: RunningBroker, step: str) -> None:
    assert await _beside_producers(ground, broker, step, "resume") == []


@pytest.mark.parametrize(
    "step", [pytest.param("fenced", marks=LONG), pytest.param("promoting", marks=LONG), "promoted"]
)
async def test_a_split_that_was_killed_before_the_map_changed_is_taken_back(
    ground: Ground, broker: RunningBroker, step: str
) -> None:
    assert await _beside_producers(ground, broker, step, "undo") == []


async def test_a_split_whose_undo_was_killed_is_not_finished_but_undone(ground: Ground, broker: RunningBroker) -> None:
    home = characters.name("moving")
    await asyncio.to_thread(Admin(broker.client()).create_topic, home, queues=1)
    words = _split(ground, home)
    await asyncio.to_thread(ground.kill_after, "promoted", *words)
    await asyncio.to_thread(ground.kill_after, "undoing", "undo")

    refusal = await asyncio.to_thread(ground.refusal, "resume")

    assert refusal == f"The move c1 into {words[3]} is being undone: run `cells undo` to finish the undo."
    await asyncio.to_thread(ground.cells, "undo")
    assert words[3] not in ground.stored(home)
