"""Four consumers of an ordered group that fail now and then: every key keeps its order, and holds up no other."""

import asyncio
import os
import time
from datetime import datetime

import pytest
from mqbroker_client import Admin, Consumer

from tests.broker.load import Crowd
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire
from tests.delivery.sequences import POISON, STUCK, Handed, OrderedGroup, Said, Sequences, send

KEYS = 50
CONSUMERS = 4
# MQ_MESSAGES_PER_KEY=200 is the long run.
PER_KEY = int(os.environ.get("MQ_MESSAGES_PER_KEY", "40"))
POISONED = {Said(f"customer-{key}", PER_KEY // 2, POISON) for key in range(0, KEYS, 10)}


def orders_of_customers() -> list[Said]:
    """Messages of all keys in turn: a tenth of the keys have one that no consumer can do; one key is stuck for good."""
    poisoned = {(said.key, said.number) for said in POISONED}
    keys = [f"customer-{key}" for key in range(KEYS)]
    found = [
        Said(key, number, POISON if (key, number) in poisoned else "order") for number in range(PER_KEY) for key in keys
    ]
    return [Said("stuck", 0, STUCK), *found, *(Said("stuck", number, "order") for number in range(1, 20))]


async def test_fifty_keys_keep_their_order_while_four_consumers_fail_now_and_then(
    broker: RunningBroker, wire: Wire, consumer: Consumer, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(
        consumer.group, ordered=True, max_reconsume_times=2, retry_policy={"kind": "table", "delay_seconds": [0]}
    )
    messages = orders_of_customers()
    expected = {said for said in messages if said.key != "stuck"}

    async with Crowd(broker.urls) as crowd:
        await send(crowd, orders, messages)
        began = time.monotonic()
        group = OrderedGroup(crowd, orders, consumer.group)
        consumers = [asyncio.create_task(group.consume()) for _ in range(CONSUMERS)]
        while not expected <= group.sequences.done() | dead(wire, consumer.group).keys():
            await asyncio.sleep(0.2)
            assert time.monotonic() - began < 120, "some keys do not come to their end"
        seconds = time.monotonic() - began
        group.open = False
        await asyncio.gather(*consumers)

    group.sequences.dead = dead(wire, consumer.group)
    failed = sum(said not in batch.acked for batch in group.sequences.batches for said in batch.messages)
    print(
        f"{len(expected)} messages of {KEYS} keys in {seconds:.1f} s: {len(group.sequences.batches)} batches, "
        f"{failed} deliveries failed, {len(group.sequences.dead)} dead letters"
    )
    assert group.sequences.flaws() == []
    assert group.sequences.dead.keys() >= POISONED
    assert not {said for said in group.sequences.done() if said.key == "stuck"}


def dead(wire: Wire, group: str) -> dict[Said, float]:
    """The group's dead letters, and when each came to be. On a busy machine deliveries expire, and more of them die."""
    letters: list[Document] = []
    query = "limit=200"
    while query:
        page = wire.get(f"/v1/dead-letters/{group}?{query}").document
        letters += page["results"]
        query = f"limit=200&cursor={page['next']}" if page["next"] else ""
    return {
        Said.read(letter["message"]["body"]): datetime.fromisoformat(letter["dead_at"]).timestamp()
        for letter in letters
    }


A0, A1 = Said("a", 0, "order"), Said("a", 1, "order")


@pytest.mark.parametrize(
    ("batches", "dead", "flaw"),
    [
        ([Handed(0, 1, 1, [A1], {A1: 1})], {}, "a 1 order came before 0 was done"),
        ([Handed(0, 1, 1, [A1, A0], {})], {}, "a 1 order came before 0 was done"),
        ([Handed(0, 3, 3, [A1], {A1: 3})], {A0: 4.0}, "a 1 order came before 0 was done"),
        (
            [Handed(0, 1, 1, [A0], {A0: 1.7}), Handed(0, 1, 1.5, [A1], {A1: 1.8})],
            {},
            "queue 0 gave a second batch while a 0 order was in flight",
        ),
        ([Handed(0, 1, 1, [A0]), Handed(0, 1, 1.9, [A0])], {}, "queue 0 gave a second batch while a 0 order was in "),
        ([Handed(0, 1, 1, [A0], {A0: 1})], {A0: 2.0}, "a 0 order ended 2 times"),
    ],
)
def test_the_sequences_show_every_flaw(batches: list[Handed], dead: dict[Said, float], flaw: str) -> None:
    assert Sequences([Handed(0, 1, 1, [A0], {A0: 1}), Handed(0, 2, 2, [A1], {A1: 2})]).flaws() == []

    assert any(told.startswith(flaw) for told in Sequences(batches, dead).flaws())
