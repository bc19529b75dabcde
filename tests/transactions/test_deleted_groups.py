"""Producer groups that are deleted while transactions are begun in them: no half message is left without its group."""

import asyncio
from collections import Counter

from tests.broker import characters
from tests.broker.load import Crowd, at_once
from tests.broker.running import RunningBroker

ROUNDS = 40
AT_ONCE = 12
APART_SECONDS = 0.004
SHIFTS = 8
SHIFT_SECONDS = 0.012


async def test_what_was_begun_beside_the_delete_of_its_group_can_be_ended(broker: RunningBroker, orders: str) -> None:
    group = characters.name("order-service")
    statuses: Counter[int] = Counter()
    async with Crowd(broker.urls) as crowd:
        for number in range(ROUNDS):
            # Both web processes remember the group now.
            await begin_and_end(crowd, group, orders, 2)

            # One after another, from a little before the delete to a little after it.
            first_after = number % SHIFTS * SHIFT_SECONDS
            deleted, ended = await asyncio.gather(
                crowd.delete(f"/v1/producer-groups/{group}"),
                begin_and_end(crowd, group, orders, AT_ONCE, first_after, APART_SECONDS),
            )

            statuses.update([deleted])
            assert ended == [(201, 200)] * AT_ONCE
    assert set(statuses) <= {204, 422}
    assert statuses[204], "no delete was in time to race with anything"


async def begin_and_end(
    crowd: Crowd, group: str, topic: str, transactions: int, first_after: float = 0, apart_seconds: float = 0
) -> list[tuple[int, int]]:
    """The statuses of a begin and its end, of several transactions beside each other."""
    half = {"producer_group": group, "topic": topic, "body": "order"}

    async def each(number: int) -> tuple[int, int]:
        await asyncio.sleep(first_after + number * apart_seconds)
        begun, document = await crowd.post("/v1/transactions", half)
        end = {"producer_group": group, "state": "ROLLBACK"}
        ended, _answer = await crowd.post(f"/v1/transactions/{document.get('transaction_id')}/end", end)
        return begun, ended

    return await at_once(each, range(transactions))
