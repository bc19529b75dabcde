"""The writers of the commit log, each with the real code behind it and a simulated server in front."""

import asyncio

from psycopg.errors import UntranslatableCharacter

from store.commit.pipelined_writer import PipelinedWriter
from store.commit.stepwise import StepwiseWriter
from store.commit.writer import Writers, write
from store.process import runtime
from tests.simulated.loop.callers import Callers, Put, takes_puts
from tests.simulated.loop.exploring import Scenario
from tests.simulated.loop.processes import SimulatedRuntime, one_server
from tests.simulated.loop.virtual import VirtualLoop, loop, require
from tests.simulated.loop.weather import Network

# Few operations fill a batch and the queue, so that short runs meet the limits.
SETTINGS = {
    "GROUP_COMMIT_MAX_WAITING": 64,
    "GROUP_COMMIT_MAX_WAITING_BYTES": 1 << 20,
    "GROUP_COMMIT_MAX_REQUESTS": 4,
    "GROUP_COMMIT_MAX_WAIT_MILLISECONDS": 500,
    "DATABASE_POOLER": "none",
}
WEB = "web"
STOPS_SECONDS = (0.3, 0.7, 2.5, 6.0)


async def begun(process: VirtualLoop) -> tuple[SimulatedRuntime, Network]:
    """A process of one server that takes messages."""
    home, network = one_server(process)
    takes_puts(network.database)
    network.database.begun |= {(1, 0)}
    runtime.install(home)
    return home, network


async def ended(home: SimulatedRuntime, network: Network) -> None:
    """The process ends: nothing of it is left."""
    network.weather.is_over = True
    async with asyncio.timeout(60):
        await home.close()
    require(not loop().unfinished(), "a task is left", loop().unfinished())
    left = [backend.application for backend in network.database.backends]
    require(not left, "a session is left open", left)
    require(not network.database.locks, "a lock is left", list(network.database.locks))


async def pipelined() -> None:
    """One pipelined writer by itself: what it leaves out another process stores."""
    home, network = await begun(loop())
    database = network.database
    writer = PipelinedWriter(home)

    async def put(one: Put) -> int | None:
        while True:
            writer.hand_in(one, at_once=loop().chance.one_in(2))
            found = await one.future
            if found is not None:
                return found
            if one.is_poison:
                raise UntranslatableCharacter
            if (stored := database.stored.get(one.key)) is not None:
                return stored.queue_offset
            database.begun.add(one.queue)
            await asyncio.sleep(0.001)
            one = Put(one.key, one.queue)

    callers = Callers(database, put)
    await loop().of_process(WEB, callers.run())
    network.weather.is_over = True
    async with asyncio.timeout(60):
        await loop().of_process(WEB, writer.close())
    callers.check()
    waiting = writer.waiting
    require(not waiting.count and not waiting._bytes and not waiting._ordinary_keys, "the queue is not empty")
    require(not writer.unanswered(), "something is still under way")
    await ended(home, network)


async def stepwise() -> None:
    """One stepwise writer by itself, beside a process that is stopped once."""
    home, network = await begun(loop())
    writer = StepwiseWriter()
    callers = Callers(network.database, writer.write)
    stopping = asyncio.create_task(stopped_once(callers), name="stops")
    await loop().of_process(WEB, callers.run())
    await stopping
    network.weather.is_over = True
    async with asyncio.timeout(60):
        await loop().of_process(WEB, writer.close())
    callers.check()
    require(not writer._waiting and not writer._waiting._bytes, "the queue is not empty")
    await ended(home, network)


async def both() -> None:
    """The two writers together, as a request has them: what the pipelined one leaves out goes to the stepwise one."""
    home, network = await begun(loop())
    callers = Callers(network.database, write)
    stopping = asyncio.create_task(stopped_once(callers), name="stops")
    await loop().of_process(WEB, callers.run())
    await stopping
    callers.check()
    writers = home.part(Writers)
    await ended(home, network)
    callers.check()
    for one in writers.pipelined.values():
        require(not one.waiting.count and not one.waiting._ordinary_keys, "the queue is not empty")
    for other in writers.stepwise.values():
        require(not other._waiting and not other._waiting._ordinary_keys, "the queue is not empty")


async def stopped_once(callers: Callers) -> None:
    """Stops the process of the callers once, as SIGSTOP does, and resumes it."""
    chance = loop().chance
    if not chance.one_in(2):
        return
    await asyncio.sleep((0.001, 0.01, 0.1, 0.5)[chance.choose(4)])
    seconds = STOPS_SECONDS[chance.choose(len(STOPS_SECONDS))]
    loop().stop_process(WEB)
    callers.stopped_seconds += seconds
    await asyncio.sleep(seconds)
    loop().resume_process(WEB)


SCENARIOS = (
    Scenario("pipelined-writer", "The pipelined writer beside a server with faults.", pipelined, SETTINGS),
    Scenario("stepwise-writer", "The stepwise writer, whose process is stopped once.", stepwise, SETTINGS),
    Scenario("both-writers", "Both writers, as a request has them.", both, SETTINGS),
)
