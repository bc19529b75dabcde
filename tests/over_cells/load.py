"""Callers of each cell at once: transactions of one topic in each, timed, with the pause that a refusal asks for."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.broker.burdens import IS_STRICT
from tests.broker.load import Crowd

# What a caller does between two transactions: the broker is not at its limit, so that a rate which falls is lost.
CALLERS, THINKS_SECONDS = (6, 0.01) if IS_STRICT else (2, 0.03)
REFUSED_SECONDS = 1.0


@dataclass
class Callers:
    """The callers of one topic: when each transaction began, how long it took, and its status."""

    group: str
    topic: str
    done: list[tuple[float, float, int]] = field(default_factory=list)

    async def run(self, crowd: Crowd, until: asyncio.Event) -> None:
        """Begins and commits one transaction after another until the event."""
        while not until.is_set():
            began = time.monotonic()
            half = {"producer_group": self.group, "topic": self.topic, "body": "order"}
            status, document = await crowd.post("/v1/transactions", half)
            if status == 201:
                end = {"producer_group": self.group, "state": "COMMIT", "topic": self.topic}
                status, _ = await crowd.post(f"/v1/transactions/{document['transaction_id']}/end", end)
            self.done.append((began, time.monotonic() - began, status))
            await asyncio.sleep(THINKS_SECONDS if status == 200 else REFUSED_SECONDS)

    def within(self, since: float, until: float) -> "Figures":
        """The figures of a time."""
        some = [(seconds, status) for began, seconds, status in self.done if since <= began < until]
        took = sorted(seconds for seconds, status in some if status == 200)
        p99 = took[len(took) * 99 // 100] if took else float("inf")
        return Figures(len(took) / (until - since), p99, len(some) - len(took))


@dataclass(frozen=True)
class Figures:
    """Transactions a second, the 99th percentile of their seconds, and how many were refused."""

    rate: float
    p99: float
    refused: int

    def __str__(self) -> str:
        return f"{self.rate:.0f}/s, p99 {self.p99 * 1000:.0f} ms, {self.refused} refused"


async def rounds(urls: Sequence[str], callers: Sequence[Callers], spans: asyncio.Queue[bool]) -> None:
    """Has all callers call until the queue has something."""
    until = asyncio.Event()
    async with Crowd(urls, connections=CALLERS * len(callers)) as crowd, asyncio.TaskGroup() as tasks:
        for one in callers:
            for _ in range(CALLERS):
                tasks.create_task(one.run(crowd, until))
        await spans.get()
        until.set()
