"""The split of a cell beside processes that write: their map may be old, and a process may be stopped at any await.

The steps of the move are those of `console/cells/moving.py` in their order, made by the world around the process. What
must not happen: a message is written to the cell that its topic has left, and acknowledged.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from store.commit.writer import write
from store.db.routing import Known
from store.errors import Refusal, TopicMoved
from store.notices.caches import LONGEST_CACHED_SECONDS
from store.process import runtime
from tests.simulated.loop.callers import Callers, Put, takes_puts
from tests.simulated.loop.exploring import Scenario
from tests.simulated.loop.postgres import Database, Queue, Stored
from tests.simulated.loop.processes import SimulatedRuntime
from tests.simulated.loop.sql_answers import server
from tests.simulated.loop.virtual import loop, require
from tests.simulated.loop.weather import Network, Weather
from tests.simulated.loop.writing import SETTINGS, WEB, stopped_once

SOURCE, TARGET = 0, 1
MOVES, STAYS = 1, 2
# The move itself is beyond these; what it does to sessions is enough.
FAULTS = ("cut before", "cut behind", "ended before", "half sent")
PAUSES = (0.0, 0.002, 0.05, 0.5)


@dataclass
class Installation:
    """Two databases, and the map from topics to them that the control has."""

    source: Database
    target: Database
    cell_of: dict[int, int]

    @property
    def stored(self) -> Mapping[bytes, Stored]:
        """What readers find: each topic in the cell that the map names."""
        cells = {SOURCE: self.source, TARGET: self.target}
        return {
            key: stored
            for cell, database in cells.items()
            for key, stored in database.stored.items()
            if self.cell_of[stored.queue[0]] == cell
        }

    @property
    def queues(self) -> Mapping[Queue, Sequence[bytes]]:
        cells = {SOURCE: self.source, TARGET: self.target}
        return {queue: cells[self.cell_of[queue[0]]].queues.get(queue, ()) for queue in _all_queues()}

    @property
    def maybe_committed(self) -> set[bytes]:
        return self.source.maybe_committed | self.target.maybe_committed


def _all_queues() -> list[Queue]:
    return [(topic, queue) for topic in (MOVES, STAYS) for queue in range(2)]


class Process:
    """The process that writes, and what it remembers of the map."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        weather = Weather(loop(), FAULTS)
        weather.may_hang = False
        databases = {SOURCE: installation.source, TARGET: installation.target}
        self.networks = {cell: Network(loop(), database, weather) for cell, database in databases.items()}
        self.home = SimulatedRuntime(self.networks)
        self._remembered: dict[int, tuple[float, int, int]] = {}

    def place_of(self, topic: int) -> tuple[int, int]:
        """The cell of a topic and the version of the map, as they were looked up lately."""
        at, cell, version = self._remembered.get(topic, (0.0, 0, 0))
        if loop().time() - at > LONGEST_CACHED_SECONDS:
            return self.look_up(topic)
        return cell, version

    def look_up(self, topic: int) -> tuple[int, int]:
        """The same, from the control."""
        cell, version = self.installation.cell_of[topic], self.installation.source.map_version
        self._remembered[topic] = (loop().time(), cell, version)
        known = runtime.control(Known)
        known.version = max(known.version, version)
        if not runtime.serves(cell):
            self.home.add(SimulatedRuntime(self.networks, cell, "c1"))
        return cell, version


class Routed(Put):
    """A message whose cell is that of its topic, by the map that this process remembers."""

    process: Process

    def ready(self) -> bool:
        self.cell, self.version = self.process.place_of(self.queue[0])
        return True

    async def renew(self, refusal: Refusal) -> bool:
        if not isinstance(refusal, TopicMoved):
            return False
        before = self.cell, self.version
        self.cell, self.version = self.process.look_up(self.queue[0])
        return before != (self.cell, self.version)


async def split(*, has_guard: bool = True) -> None:
    """A split beside writers. Without a guard the source's constraint does not refuse the topic that has left it."""
    source, target = takes_puts(server()), takes_puts(server(TARGET))
    source.begun |= set(_all_queues())
    installation = Installation(source, target, {MOVES: SOURCE, STAYS: SOURCE})
    process = Process(installation)
    runtime.install(process.home)

    class OfProcess(Routed):
        pass

    OfProcess.process = process

    async def put(one: Put) -> int | None:
        one.ready()
        found = await write(one)
        require(found is not None, "a message without an answer")
        return found

    callers = Callers(installation, put, OfProcess, (MOVES, STAYS))
    moving = asyncio.create_task(move(installation, has_guard=has_guard), name="move")
    stopping = asyncio.create_task(stopped_once(callers), name="stops")
    await loop().of_process(WEB, callers.run(4, 3))
    await asyncio.gather(moving, stopping)
    process.networks[SOURCE].weather.is_over = True
    async with asyncio.timeout(60):
        await process.home.close()
    callers.check()
    require(not loop().unfinished(), "a task is left", loop().unfinished())
    require(not source.backends and not target.backends, "a session is left open")


async def move(installation: Installation, *, has_guard: bool) -> None:
    """The steps of a move of one topic; it may be taken back before the map has changed."""
    source, target = installation.source, installation.target
    await _pause()
    loop().note("fenced")
    source.epoch += 1
    source.is_read_only, source.fence_until = True, loop().time() + 15
    await _pause()
    _oust(source)
    await _pause()
    _replay(source, target)
    await _pause()
    if loop().chance.one_in(4):
        loop().note("taken back")
        return _open(source)
    target.epoch, target.is_read_only, target.fence_until = source.epoch + 1, False, None
    target.departed = [STAYS]
    await _pause()
    loop().note("divided")
    installation.cell_of[MOVES] = TARGET
    source.map_version += 1
    target.map_version = source.map_version
    await _pause()
    loop().note("opened")
    source.departed = [MOVES]
    source.guard = frozenset([MOVES]) if has_guard else frozenset()
    return _open(source)


async def _pause() -> None:
    await asyncio.sleep(PAUSES[loop().chance.choose(len(PAUSES))])


def _oust(database: Database, *, readers: bool = False) -> None:
    for backend in list(database.backends):
        if backend.is_read_only or not readers:
            backend.kicked()


def _replay(source: Database, target: Database) -> None:
    """The standby has all that was committed."""
    target.stored = dict(source.stored)
    target.queues = {queue: list(keys) for queue, keys in source.queues.items()}
    target.begun, target.segment = set(source.begun), source.segment


def _open(source: Database) -> None:
    """Sessions that begin write again, and those that began behind the fence end."""
    # A further epoch: what sessions of the fence have learnt is old behind it.
    source.epoch += 1
    source.is_read_only, source.fence_until = False, None
    _oust(source, readers=True)


async def split_without_guard() -> None:
    """The same, where only the version of the map keeps a process from writing to a cell that its topic has left."""
    await split(has_guard=False)


SCENARIOS = (
    Scenario("split-of-a-cell", "A split beside writers.", split, SETTINGS),
    Scenario(
        "split-by-the-map-alone",
        "A split whose source does not refuse what has left it.",
        split_without_guard,
        SETTINGS,
    ),
)
