"""Races: transactions, each ended four ways at once, and what contradicts `one decision per transaction`."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from uuid import uuid4

from aiohttp import web

from tests.broker.characters import register
from tests.broker.endpoints import Asked, ProducerEndpoint, states
from tests.broker.load import Crowd, at_once
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document

Thing = TypeVar("Thing")

PER_REQUEST = 100
STATE_AFTER = {"COMMIT": "COMMITTED", "ROLLBACK": "ROLLED_BACK"}


@dataclass(frozen=True)
class Said:
    """One end of a transaction and what it was answered: a status, and the state where it is 200."""

    transaction_id: str
    decision: str
    status: int
    state: str | None


def wrongs(said: Iterable[Said], states_now: Mapping[str, str], delivered: Mapping[str, int]) -> list[str]:
    """What contradicts `one decision per transaction, and deliveries that agree with it`."""
    found = []
    for transaction_id, state in states_now.items():
        if state not in STATE_AFTER.values():
            found.append(f"{transaction_id} is {state} after its ends")
        if delivered.get(transaction_id, 0) != (state == "COMMITTED"):
            found.append(f"{transaction_id} is {state} and came {delivered.get(transaction_id, 0)} times")
    for end in said:
        won = STATE_AFTER[end.decision] == states_now[end.transaction_id]
        if (end.status, end.state) != ((200, states_now[end.transaction_id]) if won else (409, None)):
            found.append(f"{end.transaction_id} is {states_now[end.transaction_id]} and {end} was answered otherwise")
    return found + [f"{stranger} came, and is none of them" for stranger in sorted(set(delivered) - set(states_now))]


async def race(
    broker: RunningBroker, endpoint: ProducerEndpoint, groups: tuple[str, str], topic: str, transactions: int
) -> tuple[list[str], Counter[int]]:
    """Has transactions ended by two callers, a poll and check-back at once; the wrongs, and the statuses of the ends.

    `groups` are that of the producers and that of the consumers.
    """
    register(broker, groups[0], endpoint.url, max_batch=50)
    endpoint.replies(slowly_by_lot)
    ids = [str(uuid4()) for _ in range(transactions)]
    group = {"producer_group": groups[0]}
    async with Crowd(broker.urls) as crowd:
        half = {"op": "half", "topic": topic, **group}
        begun = await at_once(
            lambda some: crowd.bulk({**half, "body": id_, "transaction_id": id_} for id_ in some), parts(ids)
        )
        refused = [half for some in begun for half in some if half["status"] != 201]
        assert refused == [], f"{len(refused)} of {transactions} begins: {refused[0]}"
        await asyncio.to_thread(eventually, lambda: endpoint.asked)
        ways = [("COMMIT", False), ("ROLLBACK", False), (random.choice(["COMMIT", "ROLLBACK"]), True)]
        ends = [[(id_, *way) for id_ in random.sample(ids, len(ids))] for way in ways]
        some_ends = [part for way in ends for part in parts(way)]
        said = [one for some in await at_once(partial(end, crowd, group), some_ends) for one in some]
        states_now = dict(one for some in await at_once(partial(look, crowd, group), parts(ids)) for one in some)
        delivered = await drained(crowd, groups[1], topic)
    return wrongs(said, states_now, delivered), Counter(one.status for one in said)


async def race_in_pairs(broker: RunningBroker, groups: tuple[str, str], topic: str, transactions: int) -> list[str]:
    """Has one transaction after another committed by one web process and rolled back by the other one at once; the
    wrongs. Each end is the only request of its batch."""
    group = {"producer_group": groups[0]}
    said: list[Said] = []
    async with Crowd(broker.urls) as crowd:
        for _ in range(transactions):
            id_ = str(uuid4())
            await crowd.post("/v1/transactions", {"topic": topic, "body": id_, "transaction_id": id_, **group})
            ways = [[(id_, decision, False)] for decision in random.sample(list(STATE_AFTER), 2)]
            said += [one for some in await at_once(partial(end, crowd, group), ways) for one in some]
        states_now = dict(await look(crowd, group, [one.transaction_id for one in said[::2]]))
        delivered = await drained(crowd, groups[1], topic)
    return wrongs(said, states_now, delivered)


async def end(crowd: Crowd, group: Document, some: Sequence[tuple[str, str, bool]]) -> list[Said]:
    """Ends transactions, each by a decision that is an answer to a check or is not."""
    operations = [
        {"op": "end", "transaction_id": id_, "state": decision, "from_transaction_check": by_check, **group}
        for id_, decision, by_check in some
    ]
    results = await crowd.bulk(operations)
    return [
        Said(id_, decision, result["status"], result.get("state"))
        for (id_, decision, _), result in zip(some, results, strict=True)
    ]


async def slowly_by_lot(asked: Asked) -> web.StreamResponse:
    """Gives the others time to end what it is asked about."""
    await asyncio.sleep(0.2)
    return await states(lambda entry: random.choice(["COMMIT", "ROLLBACK"]))(asked)


async def look(crowd: Crowd, group: Document, ids: Sequence[str]) -> list[tuple[str, str]]:
    """The states of transactions, by an UNKNOWN, which answers the state and does not change it."""
    results = await crowd.bulk({"op": "end", "transaction_id": id_, "state": "UNKNOWN", **group} for id_ in ids)
    assert {result["status"] for result in results} == {202}
    return [(id_, result["state"]) for id_, result in zip(ids, results, strict=True)]


async def drained(crowd: Crowd, group: str, topic: str) -> Counter[str]:
    """How often each body came to four consumers that receive until there is no more."""

    async def consume(_: int) -> list[str]:
        found: list[str] = []
        while True:
            status, document = await crowd.post(f"/v1/consumer-groups/{group}/receive", {"topic": topic})
            assert status == 200, document
            if not document["messages"]:
                return found
            found += [entry["message"]["body"] for entry in document["messages"]]

    return Counter(body for bodies in await at_once(consume, range(4)) for body in bodies)


def parts(things: Sequence[Thing]) -> list[Sequence[Thing]]:
    """The things in portions of one request."""
    return [things[start : start + PER_REQUEST] for start in range(0, len(things), PER_REQUEST)]
