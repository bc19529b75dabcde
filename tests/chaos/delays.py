"""Delayed messages that become due over some seconds, and the books of whether each came once and in its time."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tests.broker.load import Crowd, at_once
from tests.broker.polling import STILL_SECONDS
from tests.broker.wire import Document
from tests.chaos.ledgers import Place, holes
from tests.chaos.shops import everything

PER_BULK = 100
# Between two counts of what is visible: each asks for every queue.
LOOK_SECONDS = 0.1


@dataclass
class Promises:
    """What the sends of delayed messages were answered: by body, the id and the time of delivery."""

    ids: dict[str, str] = field(default_factory=dict)
    deliver_at: dict[str, datetime] = field(default_factory=dict)

    def sent(self, body: str, answer: Document) -> None:
        """A delayed send was acknowledged."""
        assert answer["status"] == 201, answer
        self.ids[body] = answer["message_id"]
        self.deliver_at[body] = datetime.fromisoformat(answer["deliver_at"])

    def flaws(self, found: Iterable[tuple[Place, str]], visible_at: Mapping[str, datetime]) -> list[str]:
        """What a topic's queues hold, and since when, against what was promised."""
        entries = list(found)
        times = Counter(body for _, body in entries)
        flaws = [f"{body} is lost" for body in self.ids if not times[body]]
        flaws += [f"{body} is there {count} times" for body, count in times.items() if count > 1]
        flaws += [f"{body} was never sent" for body in times if body not in self.ids]
        flaws += [
            f"{body} is {self.deliver_at[body] - at} early"
            for body, at in visible_at.items()
            if at < self.deliver_at[body]
        ]
        return flaws + [f"queue {place.queue_id} has a hole before {place.queue_offset}" for place in holes(entries)]


async def send(crowd: Crowd, topic: str, delays: Iterable[Document]) -> Promises:
    """Sends a message for each of the delays, in bulk."""
    promises = Promises()
    numbered = [{"op": "send", "topic": topic, "body": f"order {n}", **delay} for n, delay in enumerate(delays)]
    for start in range(0, len(numbered), PER_BULK):
        operations = numbered[start : start + PER_BULK]
        for operation, answer in zip(operations, await crowd.bulk(operations), strict=True):
            promises.sent(operation["body"], answer)
    return promises


async def has_released(crowd: Crowd, topic: str, at_least: int) -> None:
    """Returns when so many messages of a topic of four queues are visible. Fails once none came for STILL_SECONDS."""
    seen, changed_at = 0, time.monotonic()
    while (visible := await _visible(crowd, topic)) < at_least:
        if visible != seen:
            seen, changed_at = visible, time.monotonic()
        assert time.monotonic() - changed_at < STILL_SECONDS, f"{visible} of {at_least} messages are visible"
        await asyncio.sleep(LOOK_SECONDS)


async def _visible(crowd: Crowd, topic: str) -> int:
    pages = await at_once(
        lambda queue: crowd.get(f"/v1/topics/{topic}/queues/{queue}/messages?offset=0&max=1"), range(4)
    )
    # While PostgreSQL is away, the state is unknown.
    return sum(page.get("max_offset", 0) for _, page in pages)


async def flaws(crowd: Crowd, topic: str, promises: Promises) -> list[str]:
    """What became of what was promised; every message's own trace says when it became visible."""

    async def visible_at(body: str) -> tuple[str, datetime]:
        _, trace = await crowd.get(f"/v1/messages/{promises.ids[body]}/trace")
        return body, min(
            datetime.fromisoformat(event["at"]) for event in trace["events"] if event["event"] == "visible"
        )

    found = await everything(crowd, topic)
    seen = {body for _, body in found}.intersection(promises.ids)
    return promises.flaws(found, dict(await at_once(visible_at, seen)))
