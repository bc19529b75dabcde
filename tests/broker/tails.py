"""A reader that tails a queue while others fill it, and the flaws that it must not see."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mqbroker_client import Admin

from tests.broker.load import Crowd
from tests.broker.running import RunningBroker

SENDERS = 16


@dataclass(frozen=True)
class Seen:
    """What a reader saw at one place of a queue."""

    offset: int
    body: str


def flaws(seen: Sequence[Seen], sent: Sequence[str]) -> list[str]:
    """What a reader that tails a queue from its start must not see, while senders fill it."""
    found = [
        f"offset {one.offset} follows {before.offset}"
        for before, one in zip([Seen(-1, ""), *seen], seen, strict=False)
        if one.offset != before.offset + 1
    ]
    counts = Counter(one.body for one in seen)
    found += [f"{body} was lost" for body in sent if not counts[body]]
    found += [f"{body} came {times} times" for body, times in counts.items() if times > 1]
    return found + [f"{body} was never sent" for body in sorted(set(counts) - set(sent))]


async def fill_and_tail(broker: RunningBroker, topic: str, each: int) -> list[str]:
    """The flaws that a reader of a queue saw while 16 senders sent so many messages each."""
    Admin(broker.client()).create_topic(topic, queues=1)
    sent = [f"sender {sender} order {number}" for sender in range(SENDERS) for number in range(each)]

    async with Crowd(broker.urls) as crowd:
        # The first entry of a queue takes a way of its own.
        await send(crowd, topic, sent[:1])
        reader = asyncio.create_task(tail(crowd, topic, len(sent)))
        await asyncio.gather(*(send(crowd, topic, sent[1 + sender :: SENDERS]) for sender in range(SENDERS)))
        return flaws(await reader, sent)


async def send(crowd: Crowd, topic: str, bodies: Sequence[str]) -> None:
    for body in bodies:
        status, document = await crowd.post("/v1/messages", {"topic": topic, "body": body})
        assert status == 201, document


async def tail(crowd: Crowd, topic: str, messages: int) -> list[Seen]:
    """Reads queue 0 from its start as it grows, now at one web process and now at the other."""
    seen: list[Seen] = []
    while len(seen) < messages:
        status, page = await crowd.get(
            f"/v1/topics/{topic}/queues/0/messages?offset={len(seen)}&max=100&wait_seconds=10"
        )
        assert status == 200, page
        assert page["messages"], f"nothing came after {len(seen)}"
        seen += [Seen(entry["queue_offset"], entry["message"]["body"]) for entry in page["messages"]]
    return seen
