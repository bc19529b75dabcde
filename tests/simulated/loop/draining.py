"""The drain of an outbox: two processes that may be stopped or killed, between a source and a broker with faults."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

import psycopg

from store.errors import MessageIllegal, OutcomeUnknown, RateLimited, SystemBusy, TopicClosed
from store.process import runtime
from store.process.runtime import Runtime
from tests.simulated.loop.exploring import Scenario
from tests.simulated.loop.processes import SimulatedRuntime, one_server, opened
from tests.simulated.loop.sessions import Connection
from tests.simulated.loop.sources import TOPICS, Outbox, SourceConnection
from tests.simulated.loop.virtual import VirtualLoop, loop, require
from tests.simulated.loop.weather import ERRORS, Network, Weather
from tests.simulated.loop.writing import SETTINGS, STOPS_SECONDS
from transactions.outboxes import messages
from transactions.outboxes.drain import Drain
from transactions.outboxes.progress import NOTE_OUTBOX
from transactions.outboxes.rows import Listed
from transactions.outboxes.turns import MAX_HELD_BYTES, Held

PROCESSES = ("web a", "web b")
SOURCE_FAULTS = (*ERRORS, "ended before", "ended behind", "cut before", "cut behind", "silence", "hang")
FAULTS = ("busy", "unknown", "limited", "closed")
LATENCIES = (0.002, 0.02, 0.3)
INSERTS = 8
# Each try that fails is followed by a pause; a server takes 20 s to end the session of a stopped process.
DRAINED_SECONDS = 150.0
#: Without a fault: the longest pause of a drain, and some turns of another process.
PROMPT_SECONDS = 4.0


class Broker:
    """Stores what is sent, and may refuse it for now; stands for the writers, which have scenarios of their own."""

    def __init__(self, of: VirtualLoop, outbox: Outbox) -> None:
        self._loop = of
        self._outbox = outbox
        self.faults = [fault for fault in FAULTS if of.chance.one_in(2)]

    async def run(self, operation: Any) -> None:
        """As the writer's `run`. Raises the refusals that it may raise."""
        chance = self._loop.chance
        fault = self.faults[chance.choose(len(self.faults))] if self.faults and chance.one_in(4) else ""
        await asyncio.sleep(LATENCIES[chance.choose(len(LATENCIES))])
        if fault == "busy":
            raise SystemBusy("The database is away: nothing was stored.")
        if fault == "limited":
            raise RateLimited("Too many messages a second.")
        if fault == "closed":
            raise TopicClosed("The topic takes no messages.")
        self._refuse_poison(operation)
        if fault != "unknown" or chance.one_in(2):
            self._store(operation)
        if fault == "unknown":
            raise OutcomeUnknown("The connection broke during the commit.")

    def _refuse_poison(self, operation: Any) -> None:
        if any(message.body == "poison" for message in operation.messages):
            if self._loop.chance.one_in(2):
                raise psycopg.DataError("invalid byte sequence")
            raise MessageIllegal("body is poison.")

    def _store(self, operation: Any) -> None:
        """What is known by its id is not stored again; nothing overtakes an earlier row of its key."""
        topic, stored = operation.given.topic, self._outbox.messages
        own = {message.message_id for message in operation.messages}
        for message in operation.messages:
            if message.message_id in stored:
                continue
            before = [
                row
                for row in self._outbox.rows.values()
                if (row.topic, row.sharding_key) == (topic, message.sharding_key) and row.body != "poison"
            ]
            mine = next((row.seq for row in before if UUID(row.id) == message.message_id), None)
            require(mine is not None, "a message is stored whose row is committed as gone")
            late = [row.seq for row in before if row.seq < (mine or 0) and UUID(row.id) not in stored.keys() | own]
            require(
                message.sharding_key is None or not late, "a row has overtaken an earlier one of its key", mine, late
            )
            stored[message.message_id] = self._loop.time()


class Installation:
    """The source, its network, the broker, and the processes that drain."""

    def __init__(self) -> None:
        of = loop()
        self.outbox = Outbox(of)
        weather = Weather(of, SOURCE_FAULTS)
        self.network = Network(of, self.outbox, weather)
        self.broker = Broker(of, self.outbox)
        self.homes: dict[str, Runtime] = {}
        self.drains: dict[str, asyncio.Task[None]] = {}
        self.control: Network
        first, self.control = one_server(of, ("cut before", "cut behind"))
        self.control.database.answer(NOTE_OUTBOX, noted)
        for name in PROCESSES:
            self.homes[name] = first if name == PROCESSES[0] else SimulatedRuntime({0: self.control})
            self.homes[name].connects = self._connect
        #: Whether nothing keeps a drain from its work.
        self.is_smooth = of.chance.one_in(4)
        if self.is_smooth:
            weather.faults = self.control.weather.faults = self.broker.faults = []
        of.switched = self.switch

    async def _connect(self, info: str, *, application_name: str, **_: object) -> Connection:
        return await opened(self.network, application_name, SourceConnection)

    def switch(self, name: str) -> None:
        """Code of a process finds its own runtime."""
        if name in self.homes:
            runtime.install(self.homes[name])

    async def begin(self, name: str) -> None:
        """A process begins to drain."""

        async def start() -> None:
            listed = Listed(1, "shop", "postgresql://app:word@8.8.8.8:5432/shop", "public", list(TOPICS))
            self.drains[name] = runtime.current().task(Drain(listed).forever(), f"outbox of {name}")

        await loop().of_process(name, start())

    def kill(self, name: str) -> None:
        """The process is gone, and the server reads the ends of its sessions."""
        loop().stop_process(name)
        self.drains.pop(name)
        for backend in [*self.outbox.backends]:
            if getattr(backend, "owner", "") == name:
                backend.end()

    def be_calm(self) -> None:
        """Nothing fails any more."""
        self.network.weather.is_over = self.control.weather.is_over = True
        self.broker.faults = []


def noted(_: object, given: Mapping[str, Any]) -> tuple[()]:
    """The control writes the numbers of an outbox, and why it cannot be drained."""
    failure = given["failure"] or ""
    require(not failure.startswith("a fault of the broker"), "an error that the drain does not expect", failure)
    return ()


async def draining() -> None:
    """Producers insert while two processes drain; each row is stored once or set apart, in the order of its key."""
    installation = Installation()
    with stored_by(installation.broker):
        for name in PROCESSES[: 1 + loop().chance.choose(2)]:
            await installation.begin(name)
        inserting = asyncio.create_task(insert(installation.outbox), name="producers")
        await disturb(installation)
        await inserting
        installation.be_calm()
        await _drained(installation)
        await _end(installation)
    _check(installation)


@contextlib.contextmanager
def stored_by(broker: Any) -> Iterator[None]:
    """Within the block the rows of outboxes go to this broker."""
    names = vars(messages)
    before, names["writer"] = names["writer"], broker
    try:
        yield
    finally:
        names["writer"] = before


async def insert(outbox: Outbox) -> None:
    """Transactions of producers; each reads whether the drain sleeps, and commits somewhat later."""
    chance = loop().chance
    for _ in range(INSERTS):
        await asyncio.sleep((0.0, 0.003, 0.1, 3.0)[chance.choose(4)])
        wakes = outbox.asleep
        await asyncio.sleep((0.0, 0.004)[chance.choose(2)])
        rows = []
        for number in range(1 + chance.choose(4)):
            topic, key = TOPICS[chance.choose(2)], (None, "a", "b")[chance.choose(3)]
            rows.append((topic, key, "poison" if chance.one_in(15) else f"row {number}"))
        outbox.insert(rows, wakes=wakes)


async def disturb(installation: Installation) -> None:
    """Stops or kills one process once; another one goes on, or begins."""
    chance = loop().chance
    if not chance.one_in(2):
        return
    name = PROCESSES[0]
    installation.is_smooth = False
    await asyncio.sleep((0.01, 0.2, 2.0)[chance.choose(3)])
    if chance.one_in(2):
        installation.kill(name)
        if PROCESSES[1] not in installation.drains:
            await installation.begin(PROCESSES[1])
        return
    loop().stop_process(name)
    await asyncio.sleep((*STOPS_SECONDS, 40.0)[chance.choose(len(STOPS_SECONDS) + 1)])
    loop().resume_process(name)


async def _drained(installation: Installation) -> None:
    until = loop().time() + DRAINED_SECONDS
    while installation.outbox.rows:
        require(loop().time() < until, "a row is never drained", *installation.outbox.rows)
        await asyncio.sleep(0.5)


async def _end(installation: Installation) -> None:
    """The processes end: nothing of them is left."""
    for name, drain in installation.drains.items():
        require(not drain.done(), "a drain has ended by itself")
        home = installation.homes[name]

        async def close(drain: asyncio.Task[None] = drain, home: Runtime = home) -> None:
            drain.cancel()
            await asyncio.gather(drain, return_exceptions=True)
            free = runtime.control(Held).bytes._free
            require(free == MAX_HELD_BYTES, "bytes are held for no row", free)
            await home.close()

        await loop().of_process(name, close())
    left = [backend.application for backend in installation.outbox.backends]
    require(not left, "a session is left open at the source", left)
    require(not installation.outbox.locks, "a lock is left at the source")


def _check(installation: Installation) -> None:
    outbox = installation.outbox
    for id_, at in outbox.committed_at.items():
        if id_ in outbox.refused:
            require(id_ not in outbox.messages, "a row is set apart that is stored")
            continue
        stored_at = outbox.messages.get(id_)
        require(stored_at is not None, "a row is lost")
        if installation.is_smooth and stored_at is not None:
            require(stored_at - at <= PROMPT_SECONDS, "a row has waited for too long", f"{stored_at - at:.2f} s")


SCENARIOS = (Scenario("outbox-drain", "Two processes that drain an outbox.", draining, SETTINGS),)
