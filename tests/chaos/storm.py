"""A storm: producers insist on their messages while seeded faults follow one another; then everything is read back.

`./mq chaos --seed 77 --minutes 20` runs one and prints what it found.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from mqbroker_client import Admin

from embedded.servers import postgres
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.load import Crowd
from tests.broker.running import RunningBroker
from tests.chaos.faults import Fault, Place
from tests.chaos.shops import PRODUCERS, Shop, everything

TOPIC = "storm-orders"
HOLD_SECONDS = (0.5, 5.0)
CALM_SECONDS = (0.5, 2.0)
# Refusals that come later than this after a fault was healed have no excuse.
WINDOW_SECONDS = 10.0
# Each producer has had an answer to what it began before, and to something new.
RECOVERED_AFTER = 2 * PRODUCERS
UNDECIDED_SECONDS = 90.0
LEFT_OUT = "two beats, clocks, Redis and a full disk, which tests/chaos has by themselves; delays, checks and acks"


@dataclass(frozen=True)
class Healed:
    """One fault: when it began and was healed, and how long the producers then needed, in seconds."""

    name: str
    began: float
    healed: float
    recovery: float


@dataclass
class Report:
    """What a storm found."""

    acknowledged: int = 0
    faults: list[Healed] = field(default_factory=list)
    flaws: list[str] = field(default_factory=list)
    undecided: int = 0
    outside: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def slowest(self) -> float:
        """The recovery that 95 of 100 faults stayed below."""
        times = sorted(fault.recovery for fault in self.faults)
        return times[int(len(times) * 0.95)] if times else 0.0

    @property
    def is_clean(self) -> bool:
        """Whether every promise was kept. The times are figures: they depend on the machine."""
        return not (self.flaws or self.undecided or self.failures)

    def lines(self) -> Iterator[str]:
        """The report, to be printed."""
        for fault in self.faults:
            yield f"{fault.name:<36} held {fault.healed - fault.began:4.1f} s   recovered in {fault.recovery:4.1f} s"
        yield f"acknowledged: {self.acknowledged}; faults: {len(self.faults)}; recovery p95: {self.slowest:.1f} s"
        yield f"lost, phantom, twice, holes, wrong outcomes: {len(self.flaws)}; undecided: {self.undecided}"
        yield f"HTTP 500 and undocumented answers: {len(self.failures)}"
        yield f"refused outside of the {WINDOW_SECONDS:g} s after a fault: {self.outside}"
        yield f"left out: {LEFT_OUT}"
        yield from (*self.flaws, *self.failures)


async def rage(place: Place, seconds: float) -> Report:
    """Faults in a random order for so long, each at least once if there is time; then the books are compared."""
    report = Report()
    Admin(place.broker.client()).create_topic(TOPIC, queues=4)
    async with Crowd(place.broker.urls) as crowd:
        shop = Shop(crowd, TOPIC)
        try:
            async with shop:
                await _faults(place, shop, report, seconds)
        except AssertionError as problem:
            report.failures.append(str(problem))
        except TimeoutError:
            report.failures.append(f"no recovery within a minute; the last that recovered: {report.faults[-1:]}")
        await asyncio.to_thread(place.broker.wait_until_ready)
        report.acknowledged = len(shop.ledger.visible) + len(shop.ledger.rolled_back)
        report.undecided = await _undecided(crowd)
        report.flaws = shop.ledger.flaws(await everything(crowd, TOPIC))
    report.outside = sum(not _excused(at, report.faults) for at in shop.refused_at)
    return report


async def _faults(place: Place, shop: Shop, report: Report, seconds: float) -> None:
    faults = place.faults()
    order: list[str] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        order = order or place.random.sample(sorted(faults), len(faults))
        await shop.has_acknowledged(1)
        await asyncio.sleep(place.random.uniform(*CALM_SECONDS))
        name = order.pop()
        report.faults.append(await _one(name, faults[name], shop, place.random.uniform(*HOLD_SECONDS)))


async def _one(name: str, fault: Fault, shop: Shop, hold_seconds: float) -> Healed:
    began, block = time.monotonic(), fault()
    await asyncio.to_thread(block.__enter__)
    await asyncio.sleep(hold_seconds)
    await asyncio.to_thread(block.__exit__, None, None, None)
    healed = time.monotonic()
    shop.forget_acknowledged()
    await shop.has_acknowledged(RECOVERED_AFTER)
    return Healed(name, began, healed, time.monotonic() - healed)


async def _undecided(crowd: Crowd) -> int:
    """Transactions that are still undecided after UNDECIDED_SECONDS."""
    deadline = time.monotonic() + UNDECIDED_SECONDS
    while True:
        status, page = await crowd.get("/v1/transactions?state=PREPARED&limit=100")
        assert status == 200, page
        if not page["results"] or time.monotonic() > deadline:
            return len(page["results"])
        await asyncio.sleep(1)


def _excused(at: float, faults: list[Healed]) -> bool:
    return any(fault.began <= at <= fault.healed + WINDOW_SECONDS for fault in faults)


@contextmanager
def place_in(folder: Path, redis_url: str, seed: int) -> Iterator[Place]:
    """A broker of two web processes, a worker and beat, behind a proxy, on a PostgreSQL that may be killed."""
    server = postgres.Server(folder / "postgres")
    server.start()
    try:
        with DatabaseProxy(server.url) as proxy:
            broker = RunningBroker(folder / "broker", proxy.url, redis_url, webs=2)
            broker.prepare()
            with broker:
                yield Place(broker, server, proxy, Random(seed))
    finally:
        server.stop()


def main(words: list[str]) -> int:
    """Runs a storm and prints its report; 1 when a promise was broken."""
    parser = argparse.ArgumentParser("mq chaos", description="Faults under load, and whether every promise is kept.")
    parser.add_argument("--seed", type=int, default=1, help="of the faults, their order and their lengths (default: 1)")
    parser.add_argument("--minutes", type=float, default=2, help="of faults (default: 2)")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="mqbroker-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        with place_in(Path(folder), os.environ["REDIS_URL"], given.seed) as place:
            report = asyncio.run(rage(place, given.minutes * 60))
    print("\n".join(report.lines()), flush=True)
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
