"""Receives of groups with limits join pipelined batches, and no batch exceeds a limit."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from delivery import groups
from delivery.receive.deliveries import Handout
from delivery.receive.fair import kind_of
from delivery.receive.handout import Receiving
from delivery.receive.receives import Receive, Terms
from scheduling.sending.send import Send
from store.commit import writer
from store.messages import Message
from store.process.answer_budget import Hold
from tests.broker import characters, databases
from tests.store.keeper import Keeper

CHANGE = "UPDATE consumer_group SET fair_by = %s, limits = %s WHERE name = %s"
SLOW = 0.001
KEYS = ("", "a", "b", 'c "\\"')


@pytest.fixture(scope="module")
def keeper(prepared: str) -> Iterator[Keeper]:
    """This process's broker code, on a database of its own."""
    with databases.copied(prepared) as database_url, Keeper(database_url) as keeper:
        yield keeper


@pytest.fixture
def topic(keeper: Keeper) -> str:
    """A topic with three messages of each key; the key is also the property `tenant`."""
    name = characters.name("orders")

    async def fill() -> None:
        for number in range(3):
            for key in KEYS:
                of_key: dict[str, Any] = {"sharding_key": key, "properties": {"tenant": key}} if key else {}
                await writer.run(Send(Message(topic=name, body=f"{key} {number}", **of_key)))

    keeper.do(fill())
    return name


def group_of(keeper: Keeper, topic: str, limits: dict[str, object], fair_by: str | None = None) -> str:
    """A group with these limits, whose waiting messages of the topic this process has counted."""
    name = characters.name("limited")
    keeper.do(groups.for_consuming(name))
    keeper.sql(CHANGE, fair_by, json.dumps({"by": limits["by"], "in_flight": 0}), name)
    groups.forget(name)
    # The first receive counts the messages that wait, and is written in steps.
    assert keeper.do(received(name, topic)).entries == []
    keeper.sql(CHANGE, fair_by, json.dumps(limits), name)
    return name


async def receiving(group: str, topic: str, count: int = 32) -> Receiving:
    """The receive of a group, ready for a batch."""
    terms = Terms.of(group, Receive(topic=topic, max_messages=count), None, again_at_once=False)
    receiver = await terms.receiver(Hold(), None, 0)
    return kind_of(receiver)(receiver)


async def received(group: str, topic: str) -> Handout:
    """What a receive of the group is handed."""
    return await writer.run(await receiving(group, topic))


def in_one_batch(keeper: Keeper, topic: str, *names: str) -> list[list[str]]:
    """What receives of the groups in one pipelined batch are handed: the sorted keys. None may be left out."""

    async def together() -> list[Handout | None]:
        receives = [await receiving(name, topic) for name in names]
        assert all(receive.is_plain for receive in receives)
        for receive in receives:
            writer.hand_in(receive)
        return [await receive.future for receive in receives]

    handouts = keeper.do(together())
    assert None not in handouts
    return [
        sorted(message.body.decode().rpartition(" ")[0] for _, message in handout)
        for handout in handouts
        if handout is not None
    ]


LIMITS: dict[str, tuple[dict[str, object], list[str]]] = {
    "in flight": ({"by": "sharding_key", "in_flight": 2}, sorted([*KEYS] * 2)),
    "a rate": ({"by": "property:tenant", "per_second": SLOW, "burst": 1}, sorted(KEYS)),
    "both": ({"by": "property:tenant", "in_flight": 2, "per_second": SLOW, "burst": 3}, sorted([*KEYS] * 2)),
    "values": (
        {
            "by": "property:tenant",
            "in_flight": 1,
            "values": {"a": {}, "b": {"in_flight": 0}, KEYS[3]: {"in_flight": 2}},
        },
        ["", "a", "a", "a", *[KEYS[3]] * 2],
    ),
}
OF_GROUP: dict[str, dict[str, object]] = {
    "in flight": {"by": "group", "in_flight": 4},
    "a rate": {"by": "group", "per_second": SLOW, "burst": 4},
}


@pytest.mark.parametrize("case", LIMITS)
def test_a_receive_of_a_group_with_limits_joins_a_pipelined_batch(keeper: Keeper, topic: str, case: str) -> None:
    limits, handed = LIMITS[case]
    group = group_of(keeper, topic, limits)

    [found] = in_one_batch(keeper, topic, group)

    assert found == sorted(handed)
    assert in_one_batch(keeper, topic, group) == [[]]


@pytest.mark.parametrize("fair_by", [None, "property:tenant"], ids=["in the order of queues", "by turns"])
@pytest.mark.parametrize("case", OF_GROUP)
def test_a_receive_of_a_group_that_is_limited_as_a_whole_does_too(
    keeper: Keeper, topic: str, case: str, fair_by: str | None
) -> None:
    group = group_of(keeper, topic, OF_GROUP[case], fair_by)

    [found] = in_one_batch(keeper, topic, group)

    assert len(found) == 4
    assert fair_by is None or found == sorted(KEYS)
    assert in_one_batch(keeper, topic, group) == [[]]


def test_each_group_of_a_batch_has_its_own_limits(keeper: Keeper, topic: str) -> None:
    names = [group_of(keeper, topic, limits) for limits, _ in LIMITS.values()]
    both = group_of(keeper, topic, {"by": "group", "in_flight": 6}, fair_by="sharding_key")

    whole = group_of(keeper, topic, OF_GROUP["in flight"])

    *found, of_both, of_whole = in_one_batch(keeper, topic, *names, both, whole)

    assert found == [sorted(handed) for _, handed in LIMITS.values()]
    assert (len(of_both), set(of_both)) == (6, set(KEYS))
    assert len(of_whole) == 4


def test_receives_of_one_batch_share_the_room_of_a_value(keeper: Keeper, topic: str) -> None:
    group = group_of(keeper, topic, {"by": "sharding_key", "in_flight": 2})

    found = in_one_batch(keeper, topic, group, group, group)

    assert sorted(key for keys in found for key in keys) == sorted([*KEYS] * 2)


def test_keys_without_room_are_passed_over_and_looked_at_again(keeper: Keeper) -> None:
    topic = characters.name("orders")

    async def fill() -> None:
        for key in [*(f"blocked-{number}" for number in range(100)), "z"]:
            await writer.run(Send(Message(topic=topic, body=f"{key} 0", sharding_key=key)))

    keeper.do(fill())
    group = group_of(keeper, topic, {"by": "sharding_key", "in_flight": 0, "values": {"z": {"in_flight": 1}}})

    assert in_one_batch(keeper, topic, group) == [["z"]]
    again = keeper.do(received(group, topic))
    assert again.entries == []
    assert again.again_seconds is not None
    assert not again.more
