"""The load beside a split, and the checks after it: transactions, deliveries, delayed messages, checks."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from uuid import UUID

import msgspec
from mqbroker_client import Broker, CheckPoller, Consumer, Delivery, HalfMessage, LocalTransactionState, Producer
from mqbroker_client.core.ids import uuid7

from tools.bench.load import Connection

STAYING = "staying"
QUEUES = 4
PER_SECOND = 500
CALLERS = 25
HELD = 32
DELAYED = 32
DELAY_SECONDS = 4.0
CHECKED_SECONDS = 20.0
PAGE = 500
GROUP = "bench-split"
# The pause after a refused call, which is then repeated with the same ids.
PAUSE_SECONDS = 0.01


@dataclass
class Ledger:
    """The answers to callers, per topic: acknowledged bodies with the time of their acknowledgement, by the monotonic
    clock.
    """

    acknowledged: dict[str, list[str]] = field(default_factory=dict)
    answered: dict[str, list[float]] = field(default_factory=dict)

    def note(self, topic: str, body: str) -> None:
        """Notes an acknowledgement that has just arrived."""
        self.acknowledged.setdefault(topic, []).append(body)
        self.answered.setdefault(topic, []).append(time.monotonic())

    def longest_gap(self, topic: str) -> float:
        """The longest time between two acknowledgements of a topic, in seconds."""
        return max(after - before for before, after in pairwise(self.answered[topic]))


async def transact(port: int, moving: str, ledger: Ledger, stop: asyncio.Event, caller: int) -> None:
    """Sends transactions at a fixed rate, alternately to the moving topic and to the other; repeats each until it is
    done.
    """
    connection = await Connection.open(port)
    due = time.monotonic() + caller / PER_SECOND
    number = caller
    try:
        while not stop.is_set():
            topic = moving if number % 2 else STAYING
            id_ = str(uuid7())
            half = {"topic": topic, "body": id_, "transaction_id": id_, "producer_group": GROUP}
            end = {"producer_group": GROUP, "state": "COMMIT", "topic": topic}
            await _insist(connection, "/v1/transactions", half)
            await _insist(connection, f"/v1/transactions/{id_}/end", end)
            ledger.note(topic, id_)
            number += 1
            due += CALLERS / PER_SECOND
            await asyncio.sleep(max(due - time.monotonic(), 0))
    finally:
        connection.close()


async def _insist(connection: Connection, path: str, document: object) -> None:
    body = msgspec.json.encode(document)
    while (status := (await connection.ask("POST", path, body))[0]) not in (200, 201):
        if status != 503:
            raise RuntimeError(f"{path} was answered {status}")
        await asyncio.sleep(PAUSE_SECONDS)


def take(consumer: Consumer, topic: str) -> list[Delivery]:
    """Receives deliveries of a topic, which are acked after the split."""
    held: list[Delivery] = []
    while len(held) < HELD:
        held += consumer.receive(topic, max_messages=HELD - len(held), invisible_seconds=120, wait_seconds=2)
    return held


def lateness(client: Broker, topic: str) -> float:
    """The longest time in seconds after which a delayed message reached a waiting consumer, by this machine's clock."""
    producer, consumer = Producer(client, GROUP), Consumer(client, f"{GROUP}-late")
    consumer.receive(topic, filter="late")  # creates the group
    due = {}
    for number in range(DELAYED):
        delay = DELAY_SECONDS + number / DELAYED
        due[f"{number}"] = time.time() + delay
        producer.send(topic, f"{number}", tags="late", delay_seconds=delay)
    late = 0.0
    while due:
        for delivery in consumer.receive(topic, max_messages=DELAYED, wait_seconds=10, filter="late"):
            consumer.ack([delivery])
            late = max(late, time.time() - due.pop(delivery.body.decode()))
    return late


def is_checked(producer: Producer, transaction_id: UUID) -> bool:
    """Whether a poller gets the check of a half message after the split, and can commit it."""
    checked = []

    def check(half: HalfMessage) -> LocalTransactionState:
        checked.append(half.transaction_id)
        return LocalTransactionState.COMMIT

    poller = CheckPoller(producer, check, wait_seconds=2)
    until = time.monotonic() + CHECKED_SECONDS
    while transaction_id not in checked and time.monotonic() < until:
        poller.answer_due()
    poller.close()
    return transaction_id in checked


async def compared(port: int, ledger: Ledger, topics: Sequence[str]) -> tuple[int, int]:
    """The number of acknowledged bodies that are missing, and of bodies that exist twice."""
    found: Counter[str] = Counter()
    for topic in topics:
        found += await _bodies(port, topic)
    acknowledged = [body for topic in topics for body in ledger.acknowledged[topic]]
    return sum(not found[body] for body in acknowledged), sum(found[body] > 1 for body in acknowledged)


async def _bodies(port: int, topic: str) -> Counter[str]:
    connection = await Connection.open(port)
    found: Counter[str] = Counter()
    for queue in range(QUEUES):
        offset = 0
        while True:
            path = f"/v1/topics/{topic}/queues/{queue}/messages?offset={offset}&max={PAGE}"
            _, answer = await connection.ask("GET", path)
            if not (page := msgspec.json.decode(answer)["messages"]):
                break
            found.update(entry["message"]["body"] for entry in page)
            offset = page[-1]["queue_offset"] + 1
    connection.close()
    return found
