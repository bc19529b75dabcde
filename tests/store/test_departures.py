"""A deleted consumer group leaves no rows behind, also where a receive for it was under way."""

import asyncio
from typing import Any

from delivery import registry
from delivery.receive import receives
from delivery.receive.receives import Receive
from tests.broker import characters
from tests.store.keeper import Keeper

COUNTS = """
SELECT
    (SELECT count(*) FROM receipt WHERE group_id = g.id)
    + (SELECT count(*) FROM bundle WHERE group_id = g.id) AS receipts,
    (SELECT count(*) FROM progress WHERE reader_id = g.id) AS moves
FROM unnest(%s::integer[]) AS g (id)
"""


def left(keeper: Keeper, group_id: int) -> tuple[int, int]:
    """Deliveries in flight, and rows of the ledger."""
    [counts] = keeper.sql(COUNTS, [group_id])
    return tuple(counts)


async def received(groups: list[str], topic: str) -> list[Any]:
    return list(await asyncio.gather(*(receives.receive(group, Receive(topic=topic)) for group in groups)))


def test_what_a_group_that_is_gone_left_is_deleted_and_nothing_of_others(keeper: Keeper, orders: str) -> None:
    staying, leaving = characters.name("staying"), characters.name("leaving")
    for number in range(3):
        keeper.send(orders, f"order {number}", queue_id=number)
    keeper.do(received([staying, leaving], orders))
    ids = {row.name: row.id for row in keeper.sql("SELECT name, id FROM consumer_group")}
    assert 0 not in (before := left(keeper, ids[staying]))
    assert left(keeper, ids[leaving]) == before
    # As it is when a process received for the group after another one had taken it away.
    keeper.sql("DELETE FROM consumer_group WHERE id = %s", ids[leaving])

    assert keeper.do(registry.clean_up()) == {ids[leaving]}

    assert left(keeper, ids[leaving]) == (0, 0)
    assert left(keeper, ids[staying]) == before
    assert keeper.do(registry.clean_up()) == set()
