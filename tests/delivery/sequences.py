"""Consumers of an ordered group that fail now and then, and whether every key kept its order."""

import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from tests.broker.load import Crowd
from tests.broker.wire import Document

INVISIBLE_SECONDS = 1.0
# Of the deliveries that could be done: some are given back, and of some the receipt is lost.
GIVEN_BACK, LOST = 0.01, 0.002
GIVEN_BACK_SECONDS = 0.1
NEVER_SECONDS = 3600.0
POISON, STUCK = "poison", "stuck"


class Said(NamedTuple):
    """What a message says: its key, its place among the messages of its key, and what its consumer does."""

    key: str
    number: int
    what: str

    @classmethod
    def read(cls, body: str) -> "Said":
        key, number, what = body.split()
        return cls(key, int(number), what)

    @property
    def body(self) -> str:
        return f"{self.key} {self.number} {self.what}"


@dataclass
class Handed:
    """A batch that was handed out: when it was asked for and when it came, and when each message was settled."""

    queue_id: int
    asked_at: float
    came_at: float
    messages: list[Said]
    acked: dict[Said, float] = field(default_factory=dict)
    given_back: dict[Said, float] = field(default_factory=dict)


@dataclass
class Sequences:
    """All deliveries of a group, receive by receive; `dead` has the time of each dead letter."""

    batches: list[Handed] = field(default_factory=list)
    dead: Mapping[Said, float] = field(default_factory=dict)

    def done(self) -> set[Said]:
        """Messages that were acked."""
        return {said for batch in self.batches for said in batch.acked}

    def flaws(self) -> list[str]:
        """What breaks the order."""
        return [*self._overtakings(), *self._second_batches(), *self._doubles()]

    def _overtakings(self) -> Iterator[str]:
        """A message of a key must not come before all earlier ones are acked, dead, or before it in the same batch."""
        ended: dict[str, dict[int, float]] = defaultdict(dict)
        for said, at in (*self.dead.items(), *(one for batch in self.batches for one in batch.acked.items())):
            ended[said.key][said.number] = at
        for batch in self.batches:
            before: dict[str, set[int]] = defaultdict(set)
            for said in batch.messages:
                for number in set(range(said.number)) - before[said.key]:
                    if ended[said.key].get(number, float("inf")) > batch.came_at:
                        yield f"{said.body} came before {number} was done"
                before[said.key].add(said.number)

    def _second_batches(self) -> Iterator[str]:
        """A queue's next batch must not come before every message of the last is settled, or its time is over."""
        queues: dict[int, list[Handed]] = defaultdict(list)
        for batch in sorted(self.batches, key=lambda batch: batch.came_at):
            queues[batch.queue_id].append(batch)
        for queue_id, batches in queues.items():
            for first, second in pairwise(batches):
                for said in first.messages:
                    settled_at = first.acked.get(said) or first.given_back.get(said)
                    free_at = settled_at or first.asked_at + INVISIBLE_SECONDS
                    if second.came_at < free_at:
                        yield f"queue {queue_id} gave a second batch while {said.body} was in flight"

    def _doubles(self) -> Iterator[str]:
        times: dict[Said, int] = defaultdict(int)
        for said in (*self.dead, *(one for batch in self.batches for one in batch.acked)):
            times[said] += 1
        return (f"{said.body} ended {count} times" for said, count in times.items() if count > 1)


@dataclass
class OrderedGroup:
    """Consumers of one ordered group, in this process."""

    crowd: Crowd
    topic: str
    group: str
    sequences: Sequences = field(default_factory=Sequences)
    open: bool = True

    async def consume(self) -> None:
        """Receives and settles until the group is closed. Behind a failed message no later one of its key is done."""
        asked = {"topic": self.topic, "invisible_seconds": INVISIBLE_SECONDS, "wait_seconds": 0.5}
        while self.open:
            asked_at = time.time()
            _, document = await self.crowd.post(f"/v1/consumer-groups/{self.group}/receive", asked)
            if document["messages"]:
                await self._work(asked_at, document["messages"])

    async def _work(self, asked_at: float, entries: list[Document]) -> None:
        said = [Said.read(entry["message"]["body"]) for entry in entries]
        batch = Handed(entries[0]["queue_id"], asked_at, time.time(), said)
        self.sequences.batches.append(batch)
        fates: dict[str, str] = {}
        by_fate: dict[str, list[tuple[Said, str]]] = defaultdict(list)
        for one, entry in zip(said, entries, strict=True):
            fate = fates.get(one.key) or _fate(one)
            if fate != "ack":
                fates[one.key] = fate
            by_fate[fate].append((one, entry["receipt_handle"]))
        await self._settle("ack", by_fate["ack"], batch.acked)
        await self._settle("nack", by_fate["nack"], batch.given_back, delay_seconds=GIVEN_BACK_SECONDS)
        await self._settle("nack", by_fate[STUCK], batch.given_back, delay_seconds=NEVER_SECONDS)

    async def _settle(
        self, verb: str, held: list[tuple[Said, str]], settled: dict[Said, float], **more: object
    ) -> None:
        if not held:
            return
        handles = [handle for _, handle in held]
        began_at = time.time()
        _, document = await self.crowd.post(
            f"/v1/consumer-groups/{self.group}/{verb}", {"receipt_handles": handles, **more}
        )
        for (said, _), result in zip(held, document["results"], strict=True):
            if result["status"] == 200:
                settled[said] = began_at


def _fate(said: Said) -> str:
    if said.what in (POISON, STUCK):
        return "nack" if said.what == POISON else STUCK
    return random.choices(("nack", "lose", "ack"), (GIVEN_BACK, LOST, 1 - GIVEN_BACK - LOST))[0]


async def send(crowd: Crowd, topic: str, messages: Iterable[Said], per_call: int = 500) -> None:
    """Sends messages, each with its key, in their order."""
    operations = [{"op": "send", "topic": topic, "body": one.body, "sharding_key": one.key} for one in messages]
    for start in range(0, len(operations), per_call):
        results = await crowd.bulk(operations[start : start + per_call])
        assert {result["status"] for result in results} == {201}
