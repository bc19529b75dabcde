"""Queues: dense offsets in order, whoever sends and however many; who has seen n has missed nothing before n."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker.load import Crowd
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire

SENDERS = 16
EACH = 100


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


async def test_16_senders_at_two_web_processes_and_a_reader_lose_nothing_and_see_nothing_twice(
    broker: RunningBroker, orders: str
) -> None:
    Admin(broker.client()).create_topic(orders, queues=1)
    sent = [f"sender {sender} order {number}" for sender in range(SENDERS) for number in range(EACH)]

    async with Crowd(broker.urls) as crowd:
        reader = asyncio.create_task(tail(crowd, orders, len(sent)))
        await asyncio.gather(*(send(crowd, orders, sent[sender::SENDERS]) for sender in range(SENDERS)))
        seen = await reader

    assert flaws(seen, sent) == []


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


@pytest.mark.parametrize(
    ("mutant", "flaw"),
    [
        ("loses one", "a was lost"),
        ("leaves a hole", "offset 3 follows 1"),
        ("repeats one", "b came 2 times"),
        ("turns two round", "offset 2 follows 0"),
        ("sees a stranger", "x was never sent"),
    ],
)
def test_the_checker_of_tailing_readers_catches_every_flaw(mutant: str, flaw: str) -> None:
    good = [Seen(0, "a"), Seen(1, "b"), Seen(2, "c")]
    assert flaws(good, ["a", "b", "c"]) == []

    seen = {
        "loses one": [Seen(0, "b"), Seen(1, "c")],
        "leaves a hole": [*good[:2], replace(good[2], offset=3)],
        "repeats one": [*good, Seen(3, "b")],
        "turns two round": [good[0], good[2], good[1]],
        "sees a stranger": [*good, Seen(3, "x")],
    }[mutant]

    assert flaw in flaws(seen, ["a", "b", "c"])


def test_messages_of_one_sharding_key_go_to_one_queue_in_the_order_they_were_sent(
    broker: RunningBroker, consumer: Consumer, orders: str
) -> None:
    producers = [Producer(broker.client(web), "order-service") for web in (0, 1)]

    sent = [
        producers[number % 2].send(orders, f"order {number}".encode(), sharding_key="customer-7")
        for number in range(10)
    ]

    [queue_id] = {one.queue_id for one in sent}
    page = consumer.pull(orders, queue_id, 0)
    assert [entry.body for entry in page.messages] == [f"order {number}".encode() for number in range(10)]
    assert [one.queue_offset for one in sent] == list(range(10))


def test_messages_without_a_key_take_the_queues_in_turn(producer: Producer, orders: str) -> None:
    sent = [producer.send(orders, b"order") for _ in range(8)]

    assert Counter(one.queue_id for one in sent) == dict.fromkeys(range(4), 2)


def test_a_send_is_answered_with_its_place(wire: Wire, orders: str) -> None:
    answer = wire.post("/v1/messages", {"topic": orders, "body": "order 1", "queue_id": 3})

    document: Document = answer.document
    assert answer.status == 201
    assert document == {
        "message_id": document["message_id"],
        "topic": orders,
        "queue_id": 3,
        "queue_offset": 0,
        "commit_log_offset": document["commit_log_offset"],
        "send_status": "SEND_OK",
        "stored_at": document["stored_at"],
    }


def test_messages_of_one_key_in_a_bulk_keep_their_order_whatever_their_size(wire: Wire, orders: str) -> None:
    wire.post("/v1/messages", {"topic": orders, "body": "first", "sharding_key": "customer-7"})
    # A body of more than a MiB goes another way than small ones.
    bodies = ["x" * 1_200_000, "small", "y" * 1_200_000, "small", "small"]

    for _ in range(5):
        sends = [{"op": "send", "topic": orders, "body": body, "sharding_key": "customer-7"} for body in bodies]
        offsets = [result["queue_offset"] for result in wire.bulk(*sends)]

        assert offsets == sorted(offsets)
