"""A storm: a market goes on while seeded faults follow one another; then everything is read back.

`./mq chaos --seed 77 --minutes 20` runs one and prints what it found.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random

from mqbroker_client import Admin

from mqbroker.embedded.servers import postgres, valkey
from tests.broker.characters import register
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.endpoints import ProducerEndpoint, states
from tests.broker.load import Crowd
from tests.broker.races import look, parts
from tests.broker.running import QUICK, RunningBroker
from tests.chaos import small_disk
from tests.chaos.books import summary
from tests.chaos.database_faults import DatabaseFaults
from tests.chaos.faults import Fault, Place
from tests.chaos.market import PRODUCER_GROUP, PRODUCERS, QUEUES, Market, fate, in_portions
from tests.chaos.shops import everything

HOLD_SECONDS = (0.5, 5.0)
CALM_SECONDS = (0.5, 2.0)
# Refusals that come later than this after a fault was healed have no excuse.
WINDOW_SECONDS = 10.0
# Each producer has had an answer to what it began before, and to something new.
RECOVERED_AFTER = 2 * PRODUCERS
UNDECIDED_SECONDS = 90.0
# A check that was asked in vain counts: faults must not use them up.
SETTINGS = QUICK | {"MQBROKER_TRANSACTION_CHECK_MAX": "1000"}
LEFT_OUT = "the loss of a machine with its disk (docs/operations.md: failover)"


@dataclass(frozen=True)
class Healed:
    """One fault: when it began and was healed, and how long the producers then needed, in seconds."""

    name: str
    began: float
    healed: float
    recovery: float

    def line(self) -> str:
        """For the report."""
        return f"{self.name:<36} held {self.healed - self.began:4.1f} s   recovered in {self.recovery:4.1f} s"


@dataclass
class Report:
    """What a storm found."""

    acknowledged: int = 0
    faults: list[Healed] = field(default_factory=list)
    flaws: dict[str, list[str]] = field(default_factory=dict)
    undecided: int = 0
    discarded: int = 0
    outside: int = 0
    failures: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def slowest(self) -> float:
        """The recovery that 95 of 100 faults stayed below."""
        times = sorted(fault.recovery for fault in self.faults)
        return times[int(len(times) * 0.95)] if times else 0.0

    @property
    def is_clean(self) -> bool:
        """Whether every promise was kept. The times are figures: they depend on the machine."""
        return not (any(self.flaws.values()) or self.undecided or self.discarded or self.failures)

    def lines(self) -> Iterator[str]:
        """The report, to be printed."""
        kinds = sorted({fault.name for fault in self.faults})
        yield f"acknowledged: {self.acknowledged}; faults: {len(self.faults)} of {len(kinds)} kinds"
        slowest = max((fault.recovery for fault in self.faults), default=0.0)
        yield f"recovery p95: {self.slowest:.1f} s; slowest: {slowest:.1f} s"
        yield summary(self.flaws)
        yield f"undecided after {UNDECIDED_SECONDS:g} s: {self.undecided}; discarded: {self.discarded}"
        yield f"HTTP 500, undocumented answers, no recovery: {len(self.failures)}"
        yield f"refused outside of the {WINDOW_SECONDS:g} s after a fault: {self.outside}"
        yield f"left out: {'; '.join(self.left_out)}"
        for kind, found in self.flaws.items():
            yield from (f"{kind}: {sentence}" for sentence in found)
        yield from self.failures


async def rage(place: Place, seconds: float, say: Callable[[str], None] = lambda line: None) -> Report:
    """Faults in a random order for so long, each at least once if there is time; then the books are compared."""
    report = Report(left_out=[*place.left_out(), LEFT_OUT])
    with ProducerEndpoint() as endpoint:
        endpoint.replies(states(fate))
        register(place.broker, PRODUCER_GROUP, endpoint.url, max_batch=50, timeout_seconds=5)
        for topic, queues in QUEUES.items():
            Admin(place.broker.client()).create_topic(topic, queues=queues)
        async with Crowd(place.broker.urls) as crowd:
            market = Market(crowd)
            async with market.open():
                try:
                    await _faults(place, market, report, seconds, say)
                except TimeoutError:
                    report.failures.append(
                        f"no recovery within a minute; the last that recovered: {report.faults[-1:]}"
                    )
            await asyncio.to_thread(place.broker.wait_until_ready)
            await _settle(crowd, market, report)
            await _compare(crowd, market, report)
    report.failures += market.failures
    report.outside = sum(not _is_excused(at, report.faults) for at in market.refused_at)
    return report


async def _faults(place: Place, market: Market, report: Report, seconds: float, say: Callable[[str], None]) -> None:
    known = place.faults()
    order: list[str] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        order = order or place.random.sample(sorted(known), len(known))
        await market.has_acknowledged(1)
        await asyncio.sleep(place.random.uniform(*CALM_SECONDS))
        name = order.pop()
        report.faults.append(await _one(name, known[name], market, place.random.uniform(*HOLD_SECONDS)))
        say(report.faults[-1].line())


async def _one(name: str, fault: Fault, market: Market, hold_seconds: float) -> Healed:
    began, block = time.monotonic(), fault()
    await asyncio.to_thread(block.__enter__)
    await asyncio.sleep(hold_seconds)
    await asyncio.to_thread(block.__exit__, None, None, None)
    healed = time.monotonic()
    await market.has_acknowledged(RECOVERED_AFTER)
    return Healed(name, began, healed, time.monotonic() - healed)


async def _settle(crowd: Crowd, market: Market, report: Report) -> None:
    """Waits until everything is decided and delivered, for UNDECIDED_SECONDS at most."""
    deadline = time.monotonic() + UNDECIDED_SECONDS
    async with market.consuming():
        while True:
            report.undecided = await _count(crowd, "PREPARED")
            is_settled = not report.undecided and market.books.is_delivered()
            if is_settled or time.monotonic() > deadline:
                break
            await asyncio.sleep(1)
    report.discarded = await _count(crowd, "DISCARDED")


async def _count(crowd: Crowd, state: str) -> int:
    status, page = await crowd.get(f"/v1/transactions?state={state}&limit=100")
    assert status == 200, page
    return len(page["results"])


async def _compare(crowd: Crowd, market: Market, report: Report) -> None:
    """Reads everything back, and compares it with the books."""
    books = market.books

    async def states_of(some: list[str]) -> list[tuple[str, str]]:
        return await look(crowd, {"producer_group": PRODUCER_GROUP}, some)

    async def visible_at(delayed: tuple[str, tuple[str, datetime]]) -> tuple[str, datetime]:
        body, (message_id, _) = delayed
        _, trace = await crowd.get(f"/v1/messages/{message_id}/trace")
        times = [datetime.fromisoformat(event["at"]) for event in trace["events"] if event["event"] == "visible"]
        return body, min(times)

    found = {topic: await everything(crowd, topic, queues) for topic, queues in QUEUES.items()}
    there = {body for entries in found.values() for _, body in entries}
    delayed = [one for one in books.delayed.items() if one[0] in there]
    transactions = await in_portions(states_of, parts(list(books.decisions)), at_once=2)
    report.acknowledged = len(books.visible) + len(books.rolled_back)
    report.flaws = books.flaws(
        found,
        dict(one for some in transactions for one in some),
        dict(await in_portions(visible_at, delayed)),
    )


def _is_excused(at: float, healed: list[Healed]) -> bool:
    return any(fault.began <= at <= fault.healed + WINDOW_SECONDS for fault in healed)


@contextmanager
def place_in(
    folder: Path, seed: int, start: Callable[[postgres.Server], object] = postgres.Server.start
) -> Iterator[Place]:
    """A broker of two web processes, a worker and beat, behind a proxy, on servers of its own."""
    with ExitStack() as opened:
        disk = small_disk.mounted(folder / "disk", opened)
        server, redis = postgres.Server(folder / "postgres"), valkey.Server(folder / "valkey")
        random = Random(seed)
        opened.callback(server.stop)
        opened.callback(redis.stop)
        start(server)
        redis.start()
        database = DatabaseFaults(server, random)
        if disk:
            disk.take_in(database.superuser_url, "mqbroker")
        proxy = opened.enter_context(DatabaseProxy(server.url))
        broker = RunningBroker(folder / "broker", proxy.url, redis.url, SETTINGS, webs=2)
        broker.prepare()
        database.prepare()
        opened.enter_context(broker)
        yield Place(broker, server, redis, proxy, disk, random)


def main(words: list[str]) -> int:
    """Runs a storm and prints its report; 1 when a promise was broken."""
    parser = argparse.ArgumentParser("mq chaos", description="Faults under load, and whether every promise is kept.")
    parser.add_argument("--seed", type=int, default=1, help="of the faults, their order and their lengths (default: 1)")
    parser.add_argument("--minutes", type=float, default=2, help="of faults (default: 2)")
    parser.add_argument("--logs", type=Path, help="the file that the logs of the processes are written to")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="mqbroker-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        with place_in(Path(folder), given.seed) as place:
            report = asyncio.run(rage(place, given.minutes * 60, lambda line: print(line, flush=True)))
            if given.logs:
                given.logs.write_text(place.broker.log())
    print("\n".join(report.lines()), flush=True)
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
