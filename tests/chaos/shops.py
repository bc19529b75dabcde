"""A shop whose producers go on through every accident, and what they hold the broker to."""

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from uuid import uuid4

import aiohttp

from tests.broker.load import Crowd
from tests.broker.polling import STILL_SECONDS
from tests.broker.wire import Document
from tests.chaos.ledgers import Ledger, Place

PRODUCERS = 16
# Between two orders of a producer, except while a test waits for orders: whatever lasts long is to meet requests under
# way, not the limits of a small machine.
PACE_SECONDS = 0.05
# A refusal while the database is away, or an answer that was lost: the same request again is always safe.
TRY_AGAIN = 503


@dataclass
class Shop:
    """Producers that insist on every message: they repeat it under its ids until it is acknowledged.

    They work within `async with`; afterwards everything that they began is acknowledged, and in the ledger.
    """

    crowd: Crowd
    topic: str
    ledger: Ledger = field(default_factory=Ledger)
    acknowledged: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    open: bool = True
    # When a request was refused for the moment, or its answer was lost; by the monotonic clock.
    refused_at: list[float] = field(default_factory=list)
    # When each producer had answers, and when it went on after a pause, by the same clock.
    answered: dict[asyncio.Task[None] | None, list[float]] = field(default_factory=lambda: defaultdict(list))
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _producers: list[asyncio.Task[None]] = field(default_factory=list)
    _hurries: bool = False

    async def __aenter__(self) -> Self:
        self._producers = [asyncio.create_task(self._produce()) for _ in range(PRODUCERS)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets producers and consumers finish what is under way."""
        self.open = False
        if error is not None:
            for producer in self._producers:
                producer.cancel()
        await asyncio.gather(*self._producers, return_exceptions=error is not None)

    async def _produce(self) -> None:
        while self.open:
            number = next(self._numbers)
            await (self.send(f"order {number}") if number % 3 == 0 else self.decide(f"order {number}", number % 3 == 1))
            self.acknowledged.release()
            if not self._hurries:
                await asyncio.sleep(PACE_SECONDS)
                self.answered[asyncio.current_task()].append(time.monotonic())

    async def send(self, body: str) -> None:
        message = {"topic": self.topic, "body": body, "message_id": str(uuid4())}
        self.ledger.sent(body, await self.insist("/v1/messages", message))

    async def decide(self, body: str, commits: bool) -> None:
        transaction_id, group = str(uuid4()), {"producer_group": "order-service"}
        half = {"topic": self.topic, "body": body, "transaction_id": transaction_id, **group}
        await self.insist("/v1/transactions", half)
        end = {"state": "COMMIT" if commits else "ROLLBACK", **group}
        answer = await self.insist(f"/v1/transactions/{transaction_id}/end", end)
        if commits:
            self.ledger.sent(body, answer["messages"][0])
        else:
            self.ledger.rolled_back.add(body)

    async def insist(self, path: str, document: Document) -> Document:
        """The answer, once there is one that is no refusal for the moment; any other refusal is a failure."""
        while True:
            try:
                status, answer = await self.crowd.post(path, document)
            except aiohttp.ClientError:
                self.refused_at.append(time.monotonic())
                await asyncio.sleep(0.02)
                continue
            if status != TRY_AGAIN:
                assert status in (200, 201), answer
                self.answered[asyncio.current_task()].append(time.monotonic())
                return answer
            self.refused_at.append(time.monotonic())
            await asyncio.sleep(0.02)

    def forget_acknowledged(self) -> None:
        """Counts acknowledgements anew."""
        self.acknowledged = asyncio.Semaphore(0)

    async def has_acknowledged(self, more: int) -> None:
        """Returns when so many more were acknowledged. Raises what a producer failed by, or TimeoutError once none was
        acknowledged for STILL_SECONDS.
        """

        async def are_acknowledged() -> None:
            for _ in range(more):
                async with asyncio.timeout(STILL_SECONDS):
                    await self.acknowledged.acquire()

        wanted = asyncio.create_task(are_acknowledged())
        self._hurries = True
        try:
            await asyncio.wait([wanted, *self._producers], return_when=asyncio.FIRST_COMPLETED)
            for task in (*self._producers, wanted):
                if task.done():
                    task.result()
        finally:
            self._hurries = False
            wanted.cancel()


async def read(crowd: Crowd, path: str) -> Document:
    """The answer of a read, once there is one that is no refusal for the moment."""
    while True:
        status, answer = await crowd.get(path)
        if status != TRY_AGAIN:
            assert status == 200, answer
            return answer
        await asyncio.sleep(0.02)


async def everything(crowd: Crowd, topic: str, queues: int = 4) -> list[tuple[Place, str]]:
    """Every entry of a topic."""
    found: list[tuple[Place, str]] = []
    for queue_id in range(queues):
        offset, end = 0, 1
        while offset < end:
            page = await read(crowd, f"/v1/topics/{topic}/queues/{queue_id}/messages?offset={offset}&max=1000")
            offset, end = page["next_offset"], page["max_offset"]
            found += [(Place(queue_id, entry["queue_offset"]), entry["message"]["body"]) for entry in page["messages"]]
    return found
