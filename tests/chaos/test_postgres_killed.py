"""kill -9 of PostgreSQL under load: what was acknowledged is kept, once, and the web processes go on by themselves."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from uuid import uuid4

import aiohttp
import pytest
from mqbroker_client import Admin

from mqbroker.embedded import postgres
from tests.broker.load import Crowd
from tests.broker.running import RunningBroker
from tests.broker.wire import Document
from tests.chaos.ledgers import Ledger, Place

KILLS = 5
PRODUCERS = 16
ACKNOWLEDGED_BETWEEN_KILLS = 200
# A refusal while the database is away, or one whose outcome nobody knows: the same again is always safe.
TRY_AGAIN = 503


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres.Server]:
    """A PostgreSQL that may be killed."""
    server = postgres.Server(tmp_path_factory.mktemp("postgres"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def broker(server: postgres.Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker on that PostgreSQL."""
    broker = RunningBroker(tmp_path_factory.mktemp("broker"), server.url, os.environ["REDIS_URL"], webs=2)
    broker.prepare()
    with broker:
        yield broker


@dataclass
class Shop:
    """Producers that insist on every message: they repeat it under its ids until it is acknowledged."""

    crowd: Crowd
    topic: str
    ledger: Ledger = field(default_factory=Ledger)
    acknowledged: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    open: bool = True
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def produce(self) -> None:
        while self.open:
            number = next(self._numbers)
            await (self.send(f"order {number}") if number % 3 == 0 else self.decide(f"order {number}", number % 3 == 1))
            self.acknowledged.release()

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
                continue
            if status != TRY_AGAIN:
                assert status in (200, 201), answer
                return answer
            await asyncio.sleep(0.02)

    async def has_acknowledged(self, more: int) -> None:
        """Returns when so many more were acknowledged."""
        async with asyncio.timeout(60):
            for _ in range(more):
                await self.acknowledged.acquire()


async def test_what_was_acknowledged_outlives_five_kills_of_postgresql(
    server: postgres.Server, broker: RunningBroker, orders: str
) -> None:
    Admin(broker.client()).create_topic(orders, queues=4)
    pids = [web.pid for web in broker.webs]

    async with Crowd(broker.urls) as crowd:
        shop = Shop(crowd, orders)
        producers = [asyncio.create_task(shop.produce()) for _ in range(PRODUCERS)]
        for _ in range(KILLS):
            await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN_KILLS)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN_KILLS)
        shop.open = False
        await asyncio.gather(*producers)
        found = [entry async for entry in everything(crowd, orders)]

    assert shop.ledger.flaws(found) == []
    assert [web.pid for web in broker.webs if web.is_running()] == pids


async def everything(crowd: Crowd, topic: str) -> AsyncIterator[tuple[Place, str]]:
    """Every entry of a topic."""
    for queue_id in range(4):
        offset, end = 0, 1
        while offset < end:
            _, page = await crowd.get(f"/v1/topics/{topic}/queues/{queue_id}/messages?offset={offset}&max=1000")
            offset, end = page["next_offset"], page["max_offset"]
            for entry in page["messages"]:
                yield Place(queue_id, entry["queue_offset"]), entry["message"]["body"]


@pytest.mark.parametrize(
    ("found", "flaw"),
    [
        ([("a", 0)], "b was acknowledged and is gone"),
        ([("a", 0), ("b", 2), ("x", 1)], "b was acknowledged at Place(queue_id=0, queue_offset=1) and is at "),
        ([("a", 0), ("b", 1), ("b", 2)], "b is there 2 times"),
        ([("a", 0), ("b", 1), ("c", 2)], "c was rolled back and is visible"),
        ([("a", 0), ("b", 1), ("x", 2)], "x is there and was never acknowledged"),
        ([("a", 0), ("b", 1), ("a", 3)], "queue 0 has a hole before 3"),
    ],
)
def test_the_ledger_catches_every_flaw(found: list[tuple[str, int]], flaw: str) -> None:
    ledger = Ledger({"a": Place(0, 0), "b": Place(0, 1)}, {"c"})
    assert ledger.flaws([(Place(0, 0), "a"), (Place(0, 1), "b")]) == []

    told = ledger.flaws((Place(0, offset), body) for body, offset in found)

    assert [one for one in told if one.startswith(flaw)]
