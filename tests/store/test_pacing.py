"""Large reads beside small requests: bodies come in binary and in steps, and other work comes in between."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from store.db import connections
from store.db.statements import RowType, Statement
from store.process import pacing, runtime
from store.process.runtime import Runtime
from store.queues import READ_ENTRIES
from store.segments import log
from tests.store.keeper import Keeper

LARGE = "x" * pacing.STEP_BYTES


async def test_other_work_runs_between_any_two_steps_of_large_work() -> None:
    seen: list[str] = []

    async def large(reader: str) -> None:
        for _ in range(3):
            async with pacing.step():
                seen.append(reader)

    async def small() -> None:
        while True:
            seen.append("small")
            await asyncio.sleep(0)

    with runtime.installed(Runtime()):
        sender = asyncio.create_task(small())
        await asyncio.gather(*(large(reader) for reader in ("one", "two", "three")))
        sender.cancel()

    steps = [number for number, name in enumerate(seen) if name != "small"]
    assert len(steps) == 9
    assert all(later - earlier > 1 for earlier, later in pairwise(steps))


def test_a_row_is_the_same_in_binary_and_in_text(keeper: Keeper) -> None:
    message = {"tags": "red", "keys": ["a", "b"], "properties": {"colour": "rød"}, "sharding_key": "k", "queue_id": 0}
    keeper.send("orders", "first", **message)
    keeper.send("orders", "x")

    for statement, asked in (
        (
            READ_ENTRIES,
            {"topic_id": topic_id(keeper), "queue_id": 0, "from_offset": 0, "max_entries": 9, "most_of_first": None},
        ),
        (log.READ_MESSAGES, log.at(positions(keeper))),
    ):
        given = {**asked, "max_bytes": 1000}
        in_binary = keeper.do(read(statement, given))
        assert in_binary
        assert in_binary == keeper.do(in_text(statement, given))


def test_rows_keep_their_order_whatever_size_the_bodies_have(keeper: Keeper) -> None:
    bodies = ["small", LARGE, "small too", LARGE + LARGE, "last"]
    for body in bodies:
        keeper.send("mixed", body, queue_id=0)

    assert [row.body.decode() for row in keeper.read("mixed")] == bodies


def topic_id(keeper: Keeper) -> int:
    [row] = keeper.sql("SELECT id FROM topic WHERE name = 'orders'")
    return int(row.id)


def positions(keeper: Keeper) -> list[tuple[int, int]]:
    rows = keeper.sql("SELECT segment_id, log_offset FROM commit_log")
    return [(row.segment_id, row.log_offset) for row in rows]


async def read(statement: Statement[RowType], asked: dict[str, Any]) -> Sequence[RowType]:
    return await connections.read(statement, asked)


async def in_text(statement: Statement[RowType], asked: dict[str, Any]) -> Sequence[RowType]:
    async with await connections.connect("test") as connection:
        cursor = connection.cursor(row_factory=statement.rows)
        await cursor.execute(statement.text.encode(), asked)
        return await cursor.fetchall()
