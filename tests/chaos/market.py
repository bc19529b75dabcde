"""A market under a storm: producers that insist on every order, an endpoint that is asked, consumers that ack.

Everything is repeated under its ids until it is answered otherwise than by 503; what was answered is in the books.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import count
from typing import Any
from uuid import uuid4

import aiohttp

from tests.broker.load import Crowd
from tests.broker.wire import Document
from tests.chaos.books import Books
from tests.chaos.ledgers import Place

ORDERS, COUPONS = "storm-orders", "storm-coupons"
QUEUES = {ORDERS: 4, COUPONS: 2}
PRODUCER_GROUP, CONSUMER_GROUP = "order-service", "coupon-service"
PRODUCERS, CONSUMERS = 16, 4
# Between two orders of a producer: the storm is to meet the faults, not the limits of a small machine.
PACE_SECONDS = 0.05
AGAIN_SECONDS = 0.05
INVISIBLE_SECONDS = 5
# Every so many deliveries one is not acked but refused, and comes again.
NACK_EVERY = 20
BUSY = 503


class Undocumented(Exception):
    """An answer that no promise allows: its order is given up."""


class Market:
    """Works within `open`; afterwards everything that was begun is acknowledged, or is one of the `failures`."""

    def __init__(self, crowd: Crowd) -> None:
        self.books = Books()
        self.failures: list[str] = []
        # When a request was refused for the moment, or its answer was lost; by the monotonic clock.
        self.refused_at: list[float] = []
        self._crowd = crowd
        self._numbers: Iterator[int] = count()
        self._deliveries: Iterator[int] = count(1)
        self._acknowledged = asyncio.Semaphore(0)
        self._is_open = True
        self._kinds = (
            self.send,
            self.commit,
            self.roll_back,
            self.send_batch,
            self.commit_two,
            self.forget_commit,
            self.forget_rollback,
            self.send_delayed,
            self.contest,
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Producers and consumers are at work within the block; its end waits until all of them are done."""
        producers = [asyncio.create_task(self._produce()) for _ in range(PRODUCERS)]
        consumers = [asyncio.create_task(self._consume()) for _ in range(CONSUMERS)]
        try:
            yield
            self._is_open = False
            await asyncio.gather(*producers)
        finally:
            self._is_open = False
            for task in (*producers, *consumers):
                task.cancel()
            await asyncio.gather(*producers, *consumers, return_exceptions=True)

    @asynccontextmanager
    async def consuming(self) -> AsyncIterator[None]:
        """Consumers alone are at work within the block."""
        consumers = [asyncio.create_task(self._consume()) for _ in range(CONSUMERS)]
        try:
            yield
        finally:
            for task in consumers:
                task.cancel()
            await asyncio.gather(*consumers, return_exceptions=True)

    async def has_acknowledged(self, more: int, within_seconds: float = 60) -> None:
        """Returns when so many more orders were acknowledged from now on; raises TimeoutError."""
        self._acknowledged = asyncio.Semaphore(0)
        async with asyncio.timeout(within_seconds):
            for _ in range(more):
                await self._acknowledged.acquire()

    async def _produce(self) -> None:
        while self._is_open:
            number = next(self._numbers)
            kind = self._kinds[number % len(self._kinds)]
            try:
                await kind(number)
            except Undocumented as problem:
                self.failures.append(str(problem))
            self._acknowledged.release()
            await asyncio.sleep(PACE_SECONDS)

    def _body(self, number: int, fate: str, part: int = 0) -> str:
        """The endpoint reads the fate of a half message in its body."""
        body = f"order {number}.{part} {fate}"
        self.books.begun.add(body)
        return body

    async def send(self, number: int) -> None:
        body = self._body(number, "SENT")
        message = {"topic": ORDERS, "body": body, "message_id": str(uuid4())}
        self._is_at(ORDERS, body, await self._insist("/v1/messages", message))

    async def send_delayed(self, number: int) -> None:
        body = self._body(number, "SENT")
        delay = {"delay_level": 1 + number % 5} if number % 2 else {"delay_seconds": 0.5 + number % 70 / 10}
        message = {"topic": ORDERS, "body": body, "message_id": str(uuid4()), **delay}
        answer = await self._insist("/v1/messages", message)
        self.books.visible[body] = None
        if "deliver_at" in answer:
            self.books.delayed[body] = (answer["message_id"], datetime.fromisoformat(answer["deliver_at"]))

    async def send_batch(self, number: int) -> None:
        bodies = [self._body(number, "SENT", part) for part in range(3)]
        messages = [{"body": body, "message_id": str(uuid4())} for body in bodies]
        answer = await self._insist("/v1/messages/batch", {"topic": ORDERS, "messages": messages})
        self.books.together.append(tuple(bodies))
        for body, result in zip(bodies, answer["results"], strict=True):
            self._is_at(ORDERS, body, result)

    async def commit(self, number: int) -> None:
        await self._decide("COMMIT", {ORDERS: self._body(number, "COMMIT")})

    async def roll_back(self, number: int) -> None:
        await self._decide("ROLLBACK", {ORDERS: self._body(number, "ROLLBACK")})

    async def commit_two(self, number: int) -> None:
        await self._decide("COMMIT", {topic: self._body(number, "COMMIT", part) for part, topic in enumerate(QUEUES)})

    async def contest(self, number: int) -> None:
        """The producer commits; what a check brings first is a rollback."""
        await self._decide("COMMIT", {ORDERS: self._body(number, "ROLLBACK")})

    async def forget_commit(self, number: int) -> None:
        transaction_id, body = str(uuid4()), self._body(number, "COMMIT")
        await self._begin(transaction_id, {ORDERS: body})
        self.books.visible[body] = None
        self.books.decisions[transaction_id] = "COMMIT"

    async def forget_rollback(self, number: int) -> None:
        transaction_id, body = str(uuid4()), self._body(number, "ROLLBACK")
        await self._begin(transaction_id, {ORDERS: body})
        self.books.rolled_back.add(body)
        self.books.decisions[transaction_id] = "ROLLBACK"

    async def _begin(self, transaction_id: str, bodies: dict[str, str]) -> None:
        messages = [{"topic": topic, "body": body} for topic, body in bodies.items()]
        half = {"transaction_id": transaction_id, "producer_group": PRODUCER_GROUP, "messages": messages}
        await self._insist("/v1/transactions", half)
        self.books.together.append(tuple(bodies.values()))

    async def _decide(self, decision: str, bodies: dict[str, str]) -> None:
        transaction_id = str(uuid4())
        await self._begin(transaction_id, bodies)
        end = {"state": decision, "producer_group": PRODUCER_GROUP}
        answer = await self._insist(f"/v1/transactions/{transaction_id}/end", end, ended_otherwise=True)
        if answer.get("code") == "transaction_ended":
            decision = "ROLLBACK" if decision == "COMMIT" else "COMMIT"
        self.books.decisions[transaction_id] = decision
        if decision == "ROLLBACK":
            self.books.rolled_back.update(bodies.values())
            return
        for (topic, body), message in zip(bodies.items(), answer["messages"], strict=True):
            self._is_at(topic, body, message)

    def _is_at(self, topic: str, body: str, answer: Document) -> None:
        self.books.visible[body] = (topic, Place(answer["queue_id"], answer["queue_offset"]))

    async def _insist(self, path: str, document: Document, *, ended_otherwise: bool = False) -> Document:
        """The answer, once there is one that is no refusal for the moment."""
        while True:
            try:
                status, answer = await self._crowd.post(path, document)
            except (aiohttp.ClientError, TimeoutError):
                status, answer = BUSY, {}
            if status in (200, 201) or (ended_otherwise and answer.get("code") == "transaction_ended"):
                return answer
            if status != BUSY:
                raise Undocumented(f"{path} was answered {status}: {answer}")
            self.refused_at.append(time.monotonic())
            await asyncio.sleep(AGAIN_SECONDS)

    async def _consume(self) -> None:
        group = f"/v1/consumer-groups/{CONSUMER_GROUP}"
        while True:
            for topic in QUEUES:
                try:
                    await self._handle(group, topic)
                except Undocumented as problem:
                    self.failures.append(str(problem))

    async def _handle(self, group: str, topic: str) -> None:
        asked = {"topic": topic, "max_messages": 32, "wait_seconds": 1, "invisible_seconds": INVISIBLE_SECONDS}
        began = time.monotonic()
        page = await self._insist(f"{group}/receive", asked)
        handles: dict[str, list[tuple[str, str]]] = {"ack": [], "nack": []}
        for entry in page["messages"]:
            body = entry["message"]["body"]
            self.books.received_at[body] = max(began, self.books.received_at.get(body, 0.0))
            verb = "ack" if next(self._deliveries) % NACK_EVERY else "nack"
            handles[verb].append((entry["receipt_handle"], body))
        for verb, some in handles.items():
            if some:
                await self._settle(f"{group}/{verb}", verb, some)

    async def _settle(self, path: str, verb: str, some: Sequence[tuple[str, str]]) -> None:
        answer = await self._insist(path, {"receipt_handles": [handle for handle, _ in some]})
        for (_, body), result in zip(some, answer["results"], strict=True):
            if verb == "ack" and result["status"] == 200:
                self.books.acked_at.setdefault(body, time.monotonic())


def fate(entry: Document) -> str:
    """What the endpoint answers about a half message: every second one UNKNOWN at first."""
    number = int(entry["body"].split()[1].split(".")[0])
    return "UNKNOWN" if number % 2 and entry["check_times"] == 1 else str(entry["body"].split()[2])


async def in_portions(do: Callable[[Any], Awaitable[Any]], things: Iterable[Any], at_once: int = 16) -> list[Any]:
    """The results of doing something with each of many things, some at a time."""
    left, found = list(things), []
    while left:
        some, left = left[:at_once], left[at_once:]
        found += await asyncio.gather(*map(do, some))
    return found
