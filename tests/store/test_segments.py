"""Segments: the next one is made ready and opened while messages come in, and no send waits for it."""

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from store.db import connections
from store.segments import lifecycle
from store.segments.log import APPENDERS_LOCK
from tests.broker.polling import at_this_load
from tests.store.keeper import Keeper, maintained, rolled, sent

PARTITIONED = {"check_attempt", "commit_log", "consume_queue", "operation", "progress"}
ROLLS = 6
MOST_TRIES = 300
SEGMENTS_OF_WRITERS = """
SELECT count(DISTINCT segment_id) AS segments FROM commit_log WHERE starts_with(convert_from(body, 'UTF8'), 'writer')
GROUP BY split_part(convert_from(body, 'UTF8'), ' ', 2)
"""
# A session lists this many for milliseconds, so that another partition is attached meanwhile in some of a few tries.
MANY = """
DO $$ BEGIN FOR number IN 1001..1500 LOOP
    EXECUTE 'CREATE TABLE progress_' || number || ' PARTITION OF progress FOR VALUES IN (' || number || ')';
END LOOP; END $$
"""


def test_a_fresh_broker_makes_its_next_segment_ready(keeper: Keeper) -> None:
    keeper.do(lifecycle.run())

    assert keeper.states() == {1: "open", 2: "ready"}
    assert set(keeper.partitions(2)) >= PARTITIONED
    assert set(keeper.partitions(2).values()) == {"attached"}


def test_a_partition_made_for_a_segment_is_like_the_first_one(keeper: Keeper) -> None:
    keeper.do(lifecycle.run())

    indexes = """
        SELECT replace(indexdef, tablename, 'it') AS made FROM pg_indexes
        WHERE tablename = 'commit_log_' || %s ORDER BY 1
    """
    made = [[row.made.partition(" USING ")[2] for row in keeper.sql(indexes, number)] for number in (1, 2)]
    assert made[0] == made[1] != []


def test_tables_of_another_schema_are_no_tables_of_the_broker(keeper: Keeper, orders: str) -> None:
    keeper.sql("CREATE SCHEMA other")
    keeper.sql("CREATE TABLE other.commit_log (segment_id integer) PARTITION BY LIST (segment_id)")
    keeper.send(orders, "before")

    keeper.roll()
    assert keeper.drop_old() == [1]

    assert keeper.states() == {1: "closed", 2: "open"}
    assert not keeper.sql("SELECT inhrelid FROM pg_inherits WHERE inhparent = 'other.commit_log'::regclass")


def test_making_the_next_segment_ready_stops_no_writer_and_waits_for_none(keeper: Keeper, orders: str) -> None:
    keeper.send(orders, "before")
    with keeper.session() as slow_writer:
        slow_writer.execute("UPDATE commit_log SET born_at = now()")
        keeper.do(lifecycle.run())
        keeper.send(orders, "meanwhile")

    assert keeper.states() == {1: "open", 2: "ready"}


def test_a_segment_is_rolled_at_its_age_by_the_clock_of_the_database(keeper: Keeper) -> None:
    keeper.do(lifecycle.run())
    keeper.sql("UPDATE segment SET opened_at = now() - interval '59 minutes' WHERE state = 'open'")
    assert keeper.do(roll(max_hours=1, max_messages=10)) is None

    keeper.sql("UPDATE segment SET opened_at = now() - interval '61 minutes' WHERE state = 'open'")

    assert keeper.do(roll(max_hours=1, max_messages=10)) == 2
    assert keeper.states() == {1: "closed", 2: "open"}


def test_a_segment_is_rolled_when_it_holds_too_many_messages(keeper: Keeper, orders: str) -> None:
    keeper.do(lifecycle.run())
    for number in range(3):
        keeper.send(orders, f"order {number}")
    assert keeper.do(roll(max_hours=1, max_messages=3)) is None

    keeper.send(orders, "one too many")

    assert keeper.do(roll(max_hours=1, max_messages=3)) == 2


def test_sends_go_on_in_the_open_segment_while_no_next_one_is_ready(keeper: Keeper, orders: str) -> None:
    assert keeper.do(roll(max_hours=0, max_messages=0)) is None

    answer = keeper.send(orders, "order 1")

    assert answer["send_status"] == "SEND_OK"
    assert keeper.states() == {1: "open"}


def test_a_segment_that_lacks_a_partition_is_not_opened(keeper: Keeper, orders: str) -> None:
    """A migration may bring a table while a worker of the old code makes a segment ready."""
    keeper.do(lifecycle.run())
    keeper.sql("DROP TABLE operation_2")

    assert keeper.do(roll(max_hours=0, max_messages=0)) is None

    assert keeper.send(orders, "order 1")["send_status"] == "SEND_OK"
    assert keeper.roll() == 1


def test_a_session_that_was_opened_while_partitions_were_made_knows_them_once_the_segment_is_open(
    keeper: Keeper,
) -> None:
    """Without an announcement such a session may know nothing of them until the next segment is made ready."""
    keeper.sql(MANY)
    with ThreadPoolExecutor() as workers:
        for segment_id in range(2, MOST_TRIES):
            preparing = workers.submit(keeper.do, prepared())
            opening = [workers.submit(opened_until, preparing.done, keeper) for _ in range(3)]
            sessions = [session for task in opening for session in task.result()]
            unaware = [session for session in sessions if not knows(session, segment_id)]
            assert keeper.roll() == segment_id - 1
            assert all(knows(session, segment_id) for session in sessions)
            for session in sessions:
                session.close()
            if unaware:
                return
    pytest.fail("no session was opened at the moment in question")


def test_writers_in_several_processes_lose_nothing_while_segments_roll(keeper: Keeper, orders: str) -> None:
    keeper.send(orders, "first")
    writers = [keeper.start("tests.store.writer", orders, f"writer {number}") for number in range(2)]
    while [row.segments > 2 for row in keeper.sql(SEGMENTS_OF_WRITERS)] != [True, True]:
        assert all(writer.poll() is None for writer in writers)
        keeper.roll()
    # This closes a writer's standard input, which ends its sends.
    answers = [answer for writer in writers for answer in json.loads(writer.communicate()[0])]

    for queue_id in range(4):
        stored = keeper.sql(
            "SELECT c.queue_offset, convert_from(m.body, 'UTF8') AS body, c.segment_id = m.segment_id AS beside"
            " FROM consume_queue c JOIN commit_log m ON m.segment_id = c.log_segment AND m.log_offset = c.log_offset"
            " WHERE c.queue_id = %s ORDER BY 1",
            queue_id,
        )
        answered = {offset: body for body, queue, offset in answers if queue == queue_id}
        assert [row.queue_offset for row in stored] == list(range(len(stored)))
        assert {row.queue_offset: row.body for row in stored if row.body != "first"} == answered
        assert all(row.beside for row in stored)


def test_sends_wait_for_the_moment_of_a_roll_only(keeper: Keeper, orders: str) -> None:
    async def longest_wait() -> float:
        waits: list[float] = []
        rolling = asyncio.ensure_future(roll_often())
        while not rolling.done():
            before = time.perf_counter()
            await sent(orders, "order")
            waits.append(time.perf_counter() - before)
        await rolling
        return max(waits)

    async def roll_often() -> None:
        for _ in range(ROLLS):
            await rolled()

    assert keeper.do(longest_wait()) < at_this_load(0.5)
    assert list(keeper.states().values()) == ["closed"] * ROLLS + ["open"]


def test_a_roll_gives_up_soon_when_a_writer_does_not_finish(keeper: Keeper, orders: str) -> None:
    keeper.do(lifecycle.run())
    with keeper.session() as stuck_writer:
        stuck_writer.execute("SELECT pg_advisory_xact_lock_shared(%s)", [APPENDERS_LOCK])
        with pytest.raises(psycopg.errors.LockNotAvailable):
            keeper.do(roll(max_hours=0, max_messages=0))
        assert keeper.send(orders, "order 1")["send_status"] == "SEND_OK"

    assert keeper.states() == {1: "open", 2: "ready"}
    assert keeper.roll() == 1


def test_a_tick_goes_on_with_its_other_steps_when_one_must_wait(
    keeper: Keeper, orders: str, caplog: pytest.LogCaptureFixture
) -> None:
    keeper.send(orders, "order 1")
    keeper.roll()
    keeper.do(lifecycle.run())
    keeper.sql("UPDATE segment SET opened_at = now() - interval '13 hours', closed_at = now() - interval '73 hours'")
    with keeper.session() as stuck_writer:
        stuck_writer.execute("SELECT pg_advisory_xact_lock_shared(%s)", [APPENDERS_LOCK])
        keeper.do(lifecycle.run())

    assert {
        "event": "a step waits for the next tick",
        "step": "roll",
        "reason": "canceling statement due to lock timeout",
    } in [record.msg for record in caplog.records]
    assert keeper.states() == {1: "closed", 2: "open", 3: "ready"}
    assert keeper.partitions(1)["consume_queue"] == "missing"
    keeper.do(lifecycle.run())
    assert keeper.states() == {1: "closed", 2: "closed", 3: "open"}


def test_of_two_workers_that_maintain_at_once_one_has_nothing_to_do(keeper: Keeper) -> None:
    async def second_of_two() -> object:
        async with await maintained():
            return await lifecycle.maintain()

    assert keeper.do(second_of_two()) is None


def test_two_rolls_at_once_close_one_segment(keeper: Keeper, orders: str) -> None:
    """The second process sees an empty new segment, and leaves it alone."""
    keeper.do(lifecycle.run())
    keeper.send(orders, "order 1")
    with ThreadPoolExecutor() as workers:
        tasks = [workers.submit(keeper.do, roll(max_hours=1, max_messages=0)) for _ in range(4)]
        opened = [task.result() for task in tasks]

    assert sorted(opened, key=str) == [2, None, None, None]
    assert keeper.states() == {1: "closed", 2: "open"}


def test_the_planner_knows_what_the_whole_tables_hold_once_per_segment(keeper: Keeper) -> None:
    analyzed = "SELECT pg_stat_get_last_analyze_time('commit_log'::regclass) AS at"
    keeper.do(lifecycle.run())
    [first] = keeper.sql(analyzed)
    keeper.roll()
    keeper.do(lifecycle.run())
    [second] = keeper.sql(analyzed)

    assert second.at > first.at


async def prepared() -> None:
    async with await maintained() as connection:
        await lifecycle.prepare(connection)


def opened_until(done: Callable[[], bool], keeper: Keeper) -> list[psycopg.Connection[Any]]:
    """Sessions that looked for the many partitions, each once and at once, until that."""
    sessions: list[psycopg.Connection[Any]] = []
    while not done() and len(sessions) < 20:
        sessions.append(session := keeper.session())
        session.autocommit = True
        session.execute("SELECT 1 FROM progress WHERE segment_id = 0")
    return sessions


def knows(session: psycopg.Connection[Any], segment_id: int) -> bool:
    """Whether a session would look into each table's partition of a segment."""
    selects = [f"SELECT 1 FROM {table} WHERE segment_id = {segment_id}" for table in sorted(PARTITIONED)]
    plan = str(session.execute("EXPLAIN " + " UNION ALL ".join(selects)).fetchall())
    return all(f"{table}_{segment_id}" in plan for table in PARTITIONED)


async def roll(max_hours: float, max_messages: int) -> int | None:
    """What a roll with these limits opened, on a connection of its own and without anybody's leave."""
    async with await connections.connect("test") as connection:
        return await lifecycle.roll(connection, max_hours, max_messages)
