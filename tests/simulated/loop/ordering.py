"""Sends with sharding keys: whatever way each of them takes, a later one of a bulk does not overtake an earlier one."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping

import psycopg

from scheduling.sending.detours import Detours
from store.commit.writer import write
from store.errors import OutcomeUnknown, SystemBusy
from store.process import runtime
from tests.simulated.loop.callers import Put
from tests.simulated.loop.exploring import Scenario
from tests.simulated.loop.postgres import Queue
from tests.simulated.loop.virtual import loop, require
from tests.simulated.loop.writing import SETTINGS, WEB, begun, ended

BULKS, SENDS = 2, 20
# The processor is busy with a bulk for some time, then other callbacks run; what came
# meanwhile runs with the next sends.
WORK_SECONDS = (0.0, 0.0002, 0.001, 0.004)


class OrderedPut(Put):
    """A `Put` that keeps its place in its queue, by the detours that a send with a sharding key has."""

    def __init__(self, key: bytes, queue: Queue) -> None:
        super().__init__(key, queue)
        self.ordered = True
        self.is_plain = not self.overtakes

    @property
    def overtakes(self) -> bool:
        return runtime.control(Detours).has(self.queue)

    @contextlib.contextmanager
    def detour(self) -> Iterator[None]:
        with runtime.control(Detours).of(self.queue):
            yield


async def _bulk(number: int) -> dict[Queue, list[int]]:
    """The queue offsets of the stored sends of one bulk, in the order of the bulk; a task for each, as a bulk has."""
    chance = loop().chance
    sends: list[tuple[Queue, asyncio.Task[int]]] = []
    for place in range(SENDS):
        if chance.one_in(4):
            loop().work(WORK_SECONDS[chance.choose(len(WORK_SECONDS))])
            await asyncio.sleep(0)
        put = OrderedPut(b"bulk %02d %08d" % (number, place), (1, chance.choose(2)))
        sends.append((put.queue, asyncio.create_task(write(put), name=f"bulk {number}, send {place}")))
    offsets: dict[Queue, list[int]] = {}
    for queue, send in sends:
        try:
            offset = await send
        except (SystemBusy, OutcomeUnknown, psycopg.DataError):
            continue
        require(offset is not None, "a send has no answer")
        offsets.setdefault(queue, []).append(offset or 0)
    return offsets


async def _bulks() -> list[Mapping[Queue, list[int]]]:
    if loop().chance.one_in(2):
        # The connection is open when the bulks come.
        with contextlib.suppress(SystemBusy, OutcomeUnknown):
            await write(Put(b"the first 000000", (1, 0)))
    return [*await asyncio.gather(*(_bulk(number) for number in range(BULKS)))]


async def ordered() -> None:
    """Bulks of sends to a queue that has an entry in this segment and to one that has none yet."""
    home, network = await begun(loop())
    found = await loop().of_process(WEB, _bulks())
    for bulk in found:
        for queue, offsets in bulk.items():
            require(offsets == sorted(offsets), "a later send of a bulk has overtaken an earlier one", queue, offsets)
    await ended(home, network)


SCENARIOS = (
    Scenario("ordered-sends", "Bulks of sends with sharding keys, by both writers.", ordered, SETTINGS, in_turn=True),
)
