"""Requests that wait for messages, woken by writers of their own process and by notices of other processes."""

import asyncio
from collections import Counter

from store.notices import notifier
from store.notices.notifier import CHANNEL, Wakeups
from store.process import runtime
from tests.simulated.loop.exploring import Scenario
from tests.simulated.loop.postgres import Database
from tests.simulated.loop.processes import SimulatedRuntime, one_server
from tests.simulated.loop.virtual import VirtualLoop, loop, require
from tests.simulated.loop.weather import Network
from tests.simulated.loop.writing import SETTINGS, WEB, ended

TOPIC = 1
READERS = ("coupons", "invoices")
#: As a receive of the product reads again by itself.
READ_AGAIN_SECONDS = 5.0
#: A message of this process is handed out within the reads that were under way before.
WOKEN_SECONDS = 1.0
MESSAGES = 10
FAULTS = ("cut before", "cut behind", "ended before")


class Topic:
    """The messages that were committed, each with its time, and what each reader has taken of them."""

    def __init__(self, of: VirtualLoop) -> None:
        self._loop = of
        self.committed: list[float] = []
        self.taken: dict[str, set[int]] = {reader: set() for reader in READERS}
        #: Whether no other process writes: a request that is woken may find its message, whose notice was lost.
        self.is_alone = of.chance.one_in(2)
        #: When each message of this process was announced there.
        self.announced: dict[int, float] = {}

    def commit(self) -> int:
        """One message more."""
        self.committed.append(self._loop.time())
        return len(self.committed) - 1

    async def read(self, reader: str) -> int | None:
        """The next message of a reader: what is there at some moment of the read."""
        pauses = (0.0, 0.001, 0.02)
        await asyncio.sleep(pauses[self._loop.chance.choose(3)])
        left = [number for number in range(len(self.committed)) if number not in self.taken[reader]]
        if left:
            self.taken[reader].add(left[0])
            self._judge(left[0])
        await asyncio.sleep(pauses[self._loop.chance.choose(3)])
        return left[0] if left else None

    def _judge(self, number: int) -> None:
        """Whether a message of this process has waited for a read that comes by itself."""
        if number in self.announced and self.is_alone:
            waited = self._loop.time() - self.announced[number]
            require(waited <= WOKEN_SECONDS, "a message has woken no request that waited", f"{waited:.2f} s")
        waited = self._loop.time() - self.committed[number]
        require(waited <= READ_AGAIN_SECONDS + WOKEN_SECONDS, "a message has waited for too long", f"{waited:.2f} s")


async def receive(topic: Topic, reader: str, seconds: float, gone: asyncio.Future[None]) -> None:
    """A receive, as the product makes it: it reads, and waits until something is published."""
    wakeups = runtime.part(Wakeups)
    until = loop().time() + seconds
    while loop().time() < until and not gone.done():
        with wakeups.listening({TOPIC}, reader) as waiter:
            empty_seconds = waiter.empty_seconds
            if empty_seconds is None or empty_seconds >= READ_AGAIN_SECONDS:
                if await topic.read(reader) is not None:
                    return
                empty_seconds = 0.0
                waiter.found_all()
            pause = READ_AGAIN_SECONDS - empty_seconds
            await waiter.wait(max(min(until - loop().time(), pause), 0.001), gone)


async def requests_of(topic: Topic, reader: str, stop: asyncio.Event, *, hangs_up: bool) -> None:
    """One connection of a reader, with one receive after the other; one whose caller hangs up is away for a while."""
    chance = loop().chance
    while not stop.is_set():
        gone: asyncio.Future[None] = loop().create_future()
        if hangs_up:
            loop().call_later((0.001, 0.02, 0.3, 3.0)[chance.choose(4)], _done, gone)
        await receive(topic, reader, 20.0 if not chance.one_in(4) else 0.5, gone)
        if gone.done():
            await asyncio.sleep((0.0, 2.0)[chance.choose(2)])


def _done(gone: asyncio.Future[None]) -> None:
    if not gone.done():
        gone.set_result(None)


async def publish(topic: Topic, database: Database) -> None:
    """Messages of this process and of another one, with pauses that let the caches of what is empty take hold."""
    chance = loop().chance
    for _ in range(MESSAGES):
        await asyncio.sleep((0.0, 0.001, 0.02, 3.0)[chance.choose(4)])
        number = topic.commit()
        if topic.is_alone or chance.one_in(2):
            await asyncio.sleep((0.0, 0.001)[chance.choose(2)])
            topic.announced[number] = loop().time()
            notifier.notify(Counter({TOPIC: 1}))
        else:
            loop().call_later(0.015, database.notify, CHANNEL, f"{'ab' * 8};{TOPIC}:1")


async def announce(database: Database, stop: asyncio.Event) -> None:
    """The other process says every two seconds that it is there."""
    while not stop.is_set():
        database.notify(CHANNEL, f"{'ab' * 8};")
        await asyncio.sleep(2.0)


async def listeners() -> None:
    """No request sleeps through a message, whatever the order of reads, wakes and hang-ups."""
    home, network = one_server(loop(), FAULTS)
    runtime.install(home)
    topic, stop = Topic(loop()), asyncio.Event()
    other = asyncio.create_task(announce(network.database, stop), name="the other process")
    work = [
        loop().of_process(WEB, requests_of(topic, reader, stop, hangs_up=hangs_up))
        for reader in READERS
        for hangs_up in (False, True)
    ]
    await loop().of_process(WEB, _start())
    await asyncio.sleep((0.0, 8.0)[loop().chance.choose(2)])
    await loop().of_process(WEB, publish(topic, network.database))
    await asyncio.sleep(READ_AGAIN_SECONDS + 2 * WOKEN_SECONDS)
    for reader in READERS:
        require(len(topic.taken[reader]) == MESSAGES, "a message was never read", reader)
    stop.set()
    await asyncio.gather(*work, other)
    await _all_is_forgotten(home, network)


async def _start() -> None:
    notifier.start()


async def _all_is_forgotten(home: SimulatedRuntime, network: Network) -> None:
    wakeups = home.part(Wakeups)
    require(not wakeups._topics, "a topic without a request is remembered", wakeups._topics)
    await ended(home, network)
    require(not wakeups._unsent, "a notice was not sent")


SCENARIOS = (Scenario("listeners", "Requests that wait, wakers, notices of another process.", listeners, SETTINGS),)
