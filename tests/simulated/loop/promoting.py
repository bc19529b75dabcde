"""A split by the product's own run, beside writers: a run may be killed or frozen at any wait, and another takes over.

What the run decides is its own: fence, replay, hold, promotion, map, opening, and what it takes back.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from console.cells import dividing, moving, steps
from store.cells import sides
from store.commit.writer import write
from store.errors import Refusal
from store.process import runtime
from tests.simulated.loop import threads
from tests.simulated.loop.callers import Callers, Put, takes_puts
from tests.simulated.loop.controls import Control
from tests.simulated.loop.exploring import Scenario
from tests.simulated.loop.sides import Session, Standby
from tests.simulated.loop.splitting import MOVES, SOURCE, STAYS, TARGET, Installation, Process, Routed, _all_queues
from tests.simulated.loop.sql_answers import server
from tests.simulated.loop.virtual import loop, require
from tests.simulated.loop.writing import SETTINGS, WEB

# A fence lasts for the time of some runs that were killed.
ATTEMPTS = 2_000
RUNS = 8
SIGNED: Any = "the operator of the run"


class Ground:
    """Two databases, the control's rows, and the runs of the move."""

    def __init__(self) -> None:
        source, target = takes_puts(server()), takes_puts(server(TARGET))
        source.begun |= set(_all_queues())
        target.is_read_only, target.fence_until = True, float("inf")
        self.installation = Installation(source, target, {MOVES: SOURCE, STAYS: SOURCE})
        self.sides = {"0": Standby(source), "1": Standby(target, source)}
        self.control = Control(self._divide, [MOVES, STAYS])
        self.said: list[str] = []

    def _divide(self) -> None:
        source, target = self.installation.source, self.installation.target
        self.installation.cell_of[MOVES] = TARGET
        source.map_version += 1
        target.map_version = source.map_version

    def cut_sessions(self, may_be_cut: bool) -> None:
        """Whether the sessions of runs break from now on."""
        for side in self.sides.values():
            side.may_be_cut = may_be_cut

    def connect(self, info: str, **_: object) -> Session:
        """A session of a run at one of the databases."""
        threads.sleep(0.001)
        return Session(self.sides[info])

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Within the block the modules of a move have these databases and rows."""
        names = {
            **self.control.names(),
            "PatientConnection": SimpleNamespace(connect=self.connect),
            "conninfo": lambda _, url: url or "0",
        }
        with contextlib.ExitStack() as stack:
            for module in (moving, dividing, sides):
                for name in names.keys() & vars(module).keys():
                    stack.callback(vars(module).__setitem__, name, vars(module)[name])
                    vars(module)[name] = names[name]
            stack.enter_context(threads.replaced())
            yield

    async def run(self, number: int, *, undoes: bool) -> threads.Thread:
        """A run of the move, as a process of its own: the first one, or one that takes the move over."""

        def say(words: str) -> None:
            loop().note("says", words)

        def work() -> None:
            try:
                with moving.taken_over(SIGNED, say) if number else moving.Run(self.control.move(), SIGNED, say) as run:
                    run.take_back() if undoes else run.finish()
            except Refusal as refusal:
                self.said.append(refusal.detail)

        async def start() -> threads.Thread:
            thread = threads.Thread(work, f"run {number}")
            thread.start()
            return thread

        return await loop().of_process(f"run {number}", start())


async def promoting() -> None:
    """A split by its own run beside writers of both topics."""
    ground = Ground()
    process = Process(ground.installation)
    runtime.install(process.home)

    class OfProcess(Routed):
        pass

    OfProcess.process = process

    async def put(one: Put) -> int | None:
        one.ready()
        return await write(one)

    ground.cut_sessions(loop().chance.one_in(2))
    callers = Callers(ground.installation, put, OfProcess, (MOVES, STAYS), attempts=ATTEMPTS)
    with ground.entered():
        expiring = asyncio.create_task(_expire(ground), name="fences that end")
        work = loop().of_process(WEB, callers.run(4, 4))
        await asyncio.sleep((0.0, 0.01, 0.2)[loop().chance.choose(3)])
        await _runs(ground)
        await work
        expiring.cancel()
        await asyncio.gather(expiring, return_exceptions=True)
    _check(ground)
    async with asyncio.timeout(60):
        await process.home.close()
    callers.check()


async def _expire(ground: Ground) -> None:
    """Processes that connect, each of which ends a fence whose time is over."""
    while True:
        await asyncio.sleep(0.25)
        ground.sides["0"].expire()


async def _runs(ground: Ground) -> None:
    """One run after the other until the move has ended; each may be killed or frozen while the next takes over."""
    chance = loop().chance
    frozen = []
    for number in range(RUNS):
        if not ground.control.running:
            break
        is_last = number >= RUNS - 3
        if is_last:
            ground.cut_sessions(False)
        # A move that is being undone can be undone only.
        undoes = number > 0 and (ground.control.step == steps.UNDOING or (not is_last and chance.one_in(3)))
        thread = await ground.run(number, undoes=undoes)
        if not is_last and chance.one_in(2):
            await asyncio.wait([thread.ended], timeout=(0.005, 0.03, 0.1, 0.6)[chance.choose(4)])
            loop().stop_process(thread.process)
            frozen.append((thread, chance.one_in(2)))
            continue
        await asyncio.wait([thread.ended], timeout=60)
        require(not thread.is_alive(), "a run does not end")
    require(not ground.control.running, "a move is never ended", ground.control.step, *ground.said[-2:])
    for thread, goes_on in frozen:
        if goes_on:
            loop().resume_process(thread.process)
            await asyncio.wait([thread.ended], timeout=60)
            require(not thread.is_alive(), "a run that was frozen does not end")


def _check(ground: Ground) -> None:
    """The source takes writes again, each side refuses what has left it, and no session of a run is left."""
    source, target, control = ground.installation.source, ground.installation.target, ground.control
    is_done = control.step == steps.DONE
    require(is_done or control.step == steps.UNDONE, "a move ended at a step that is no end", control.step)
    require(ground.installation.cell_of[MOVES] == (TARGET if is_done else SOURCE), "the map is not what the move says")
    require(not source.is_read_only and source.fence_until is None, "the source is left fenced", control.step)
    require((MOVES in source.guard) == is_done, "the guard of the source is wrong", *source.guard)
    require(not is_done or not target.is_read_only, "the new cell takes no writes")
    alive = [one.owner for side in ground.sides.values() for one in side.movers if not loop().is_stopped(one.owner)]
    require(not alive, "a session of a run is left open", alive)


SCENARIOS = (
    Scenario("promotion", "A split by its own run, which may be killed, beside writers.", promoting, SETTINGS),
)
