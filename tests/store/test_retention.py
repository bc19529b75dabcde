"""Retention: old segments are dropped, without a message that a row still needs, and no request waits for it."""

import asyncio
import time

import psycopg
import pytest

from delivery.receipts import settling
from delivery.receive import pull, receives
from delivery.receive.receives import Receive
from scheduling import release
from store.commit import writer
from store.errors import OffsetOutOfRange
from store.process.answer_budget import Hold
from store.segments import lifecycle, retention
from tests.broker import characters
from tests.broker.polling import at_this_load
from tests.store.keeper import Keeper, entries, rolled, sent

RETENTION_HOURS = 72


@pytest.fixture
def coupons() -> str:
    """A group of consumers that is made at its first use."""
    return characters.name("coupons")


def test_a_segment_goes_when_it_has_been_closed_for_longer_than_the_retention(keeper: Keeper, orders: str) -> None:
    fill(keeper, orders, segments=3)
    closed(keeper, 1, hours_ago=73)
    closed(keeper, 2, hours_ago=72.1)

    assert keeper.drop_old(RETENTION_HOURS) == [1, 2]

    assert bodies(keeper, orders) == ["order 3", "order 4"]
    # The log of the second one stays as long as entries of the third, which may point into it.
    assert keeper.states() == {1: "dropped", 2: "closed", 3: "closed", 4: "open"}
    assert set(keeper.partitions(1).values()) == {"missing"}
    assert [table for table, state in keeper.partitions(2).items() if state != "missing"] == ["commit_log"]


def test_offsets_go_on_after_everything_of_a_queue_was_dropped(keeper: Keeper, orders: str) -> None:
    fill(keeper, orders, segments=2)
    keeper.roll()
    keeper.drop_old()
    assert bodies(keeper, orders) == []

    assert keeper.send(orders, "the next one", queue_id=0)["queue_offset"] == 3


def test_an_offset_below_the_floor_is_out_of_range(keeper: Keeper, orders: str) -> None:
    fill(keeper, orders, segments=2)
    keeper.roll()
    keeper.drop_old()

    with pytest.raises(OffsetOutOfRange) as refused:
        keeper.do(pull.pull(orders, 0, offset=2, max_messages=1, wait_seconds=0, hold=Hold()))

    assert (refused.value.code, refused.value.extra) == ("offset_out_of_range", {"min_offset": 3, "max_offset": 3})
    found = keeper.do(pull.pull(orders, 0, offset=3, max_messages=1, wait_seconds=0, hold=Hold()))
    assert list(found.entries) == []


def test_a_group_keeps_its_position_when_the_segment_goes_in_which_it_last_moved(
    keeper: Keeper, orders: str, coupons: str
) -> None:
    """RocketMQ keeps consumer offsets beside the log; here they lie in segments, and are carried over."""
    keeper.send(orders, "order 1", queue_id=0)
    assert keeper.do(received(coupons, orders)) == ["order 1"]
    keeper.roll()
    keeper.send(orders, "order 2", queue_id=0)
    for _ in range(3):
        keeper.roll()
        keeper.drop_old()

    keeper.send(orders, "order 3", queue_id=0)

    assert keeper.do(received(coupons, orders)) == ["order 3"]
    [[position]] = keeper.sql("SELECT max(next_offset) FROM progress WHERE reader_id > 0 AND topic_id > 2 AND move > 0")
    assert position == 3


def test_a_group_that_lags_behind_the_retention_goes_on_at_the_floor(keeper: Keeper, orders: str, coupons: str) -> None:
    keeper.send(orders, "order 0", queue_id=0)
    assert keeper.do(received(coupons, orders)) == ["order 0"]
    fill(keeper, orders, segments=2)

    keeper.drop_old()

    assert keeper.do(received(coupons, orders)) == ["order 3"]


def test_a_topic_with_a_longer_retention_keeps_its_segments_and_all_later_ones(keeper: Keeper, orders: str) -> None:
    audit = characters.name("audit")
    keeper.send(orders, "order 0", queue_id=0)
    keeper.roll()
    keeper.send(audit, "who did it", queue_id=0)
    keeper.sql("UPDATE topic SET reserved_hours = 100 WHERE name = %s", audit)
    keeper.roll()
    fill(keeper, orders, segments=1)
    for segment_id, hours in ((1, 99), (2, 98), (3, 97)):
        closed(keeper, segment_id, hours_ago=hours)

    assert keeper.drop_old(RETENTION_HOURS) == [1]
    assert bodies(keeper, audit) == ["who did it"]
    assert bodies(keeper, orders) == ["order 1", "order 2"]

    closed(keeper, 2, hours_ago=101)
    assert keeper.drop_old(RETENTION_HOURS) == [2, 3]


def test_a_topic_with_a_shorter_retention_loses_nothing_early(keeper: Keeper, orders: str) -> None:
    fill(keeper, orders, segments=1)
    keeper.sql("UPDATE topic SET reserved_hours = 1 WHERE name = %s", orders)
    closed(keeper, 1, hours_ago=71)

    assert keeper.drop_old(RETENTION_HOURS) == []
    assert bodies(keeper, orders) == ["order 1", "order 2"]


def test_an_entry_is_never_without_its_message_while_segments_go(keeper: Keeper, orders: str) -> None:
    """Each message is released in the segment after the one that holds its body: the hard case."""

    async def read_while_dropping() -> int:
        looks = 0
        dropping = asyncio.ensure_future(release_and_drop())
        while not dropping.done():
            offsets = [row.queue_offset for row in await entries(orders, 0, 0)]
            assert offsets == list(range(offsets[0], offsets[-1] + 1)) if offsets else True
            looks += 1
        await dropping
        return looks

    async def release_and_drop() -> None:
        for number in range(5):
            for place in range(3):
                await sent(orders, f"order {number}.{place}", queue_id=0, delay_level=18)
            await rolled()
            await move_due_times(keeper)
            await release.run(ahead_seconds=0)
            await asyncio.to_thread(keeper.drop_old)

    keeper.send(orders, "first", queue_id=0)
    assert keeper.do(read_while_dropping()) > 20
    assert keeper.sql("SELECT count(*) FROM consume_queue WHERE log_segment = segment_id - 1")[0].count == 3


def test_a_long_reader_delays_the_drop_and_no_request(keeper: Keeper, orders: str) -> None:
    fill(keeper, orders, segments=1)
    with keeper.session() as long_reader:
        assert long_reader.execute("SELECT count(*) FROM consume_queue").fetchone() == (2,)
        started = time.monotonic()
        waits = [wait for attempt in range(2) for wait in keeper.do(waits_while_dropping(keeper, orders))]
        assert long_reader.execute("SELECT count(*) FROM consume_queue WHERE segment_id = 2").fetchone() is not None
    assert time.monotonic() - started < at_this_load(20)
    assert max(waits) < at_this_load(0.5)

    assert keeper.drop_old() == [1]
    assert "order 1" not in bodies(keeper, orders)


async def waits_while_dropping(keeper: Keeper, orders: str) -> list[float]:
    """How long each send took while a drop waited in vain for a reader."""
    waits = []
    dropping = asyncio.ensure_future(asyncio.to_thread(keeper.drop_old))
    while not dropping.done():
        before = time.perf_counter()
        await sent(orders, "meanwhile", queue_id=1)
        assert (await entries(orders, 1, 0))[-1].body == b"meanwhile"
        waits.append(time.perf_counter() - before)
    with pytest.raises(psycopg.errors.LockNotAvailable):
        await dropping
    return waits


@pytest.mark.chaos
def test_processes_that_are_killed_at_every_statement_lose_nothing(keeper: Keeper, orders: str, coupons: str) -> None:
    fill(keeper, orders, segments=4)
    assert keeper.do(received(coupons, orders)) == ["order 1", "order 2", "order 3", "order 4", "order 5"]
    keeper.roll()

    mortal = keeper.start("tests.store.mortal")
    killed = int(mortal.communicate()[0])

    assert killed > 12
    states = list(keeper.states().values())
    assert states == sorted(states, key=["dropped", "closed", "open", "ready"].index)
    assert states.count("open") == 1
    dropped = [segment_id for segment_id, state in keeper.states().items() if state == "dropped"]
    assert dropped
    assert {state for segment_id in dropped for state in keeper.partitions(segment_id).values()} == {"missing"}
    assert keeper.send(orders, "order 6", queue_id=0)["queue_offset"] == 5
    assert keeper.do(received(coupons, orders)) == ["order 6"]


def test_a_delay_level_that_is_not_released_keeps_its_segment(keeper: Keeper, orders: str) -> None:
    keeper.send(orders, "later", queue_id=0, delay_level=18)
    keeper.roll()
    assert keeper.drop_old() == []

    keeper.do(move_due_times(keeper))
    keeper.do(release.run(ahead_seconds=0))

    assert keeper.drop_old() == [1]
    assert bodies(keeper, orders) == ["later"]


def test_no_log_goes_while_any_table_points_into_it(keeper: Keeper, orders: str) -> None:
    """Also a table that is newer than the retention."""
    fill(keeper, orders, segments=2)
    keeper.sql("CREATE TABLE bookmark AS SELECT segment_id AS log_segment, log_offset FROM commit_log LIMIT 1")

    assert keeper.drop_old() == [1]
    assert keeper.do(retention.leaving()) == 1
    assert keeper.partitions(1)["commit_log"] == "attached"

    keeper.sql("DROP TABLE bookmark")
    assert keeper.drop_old() == [2]
    assert keeper.states()[1] == "dropped"


def test_a_tick_finds_all_of_this_by_itself(keeper: Keeper, orders: str) -> None:
    keeper.do(lifecycle.run())
    for _ in range(4):
        keeper.send(orders, "order", queue_id=0)
        keeper.sql("UPDATE segment SET opened_at = now() - interval '13 hours' WHERE state = 'open'")
        keeper.do(lifecycle.run())
        keeper.do(lifecycle.run())
    for segment_id in (1, 2, 3):
        closed(keeper, segment_id, hours_ago=100 - segment_id)

    keeper.do(lifecycle.run())

    assert list(keeper.states().values()) == ["dropped", "dropped", "closed", "closed", "open", "ready"]


def fill(keeper: Keeper, topic: str, segments: int) -> None:
    """One message in each of some segments, and one in the open one, all in one queue."""
    for number in range(1, segments + 1):
        keeper.send(topic, f"order {number}", queue_id=0)
        keeper.roll()
    keeper.send(topic, f"order {segments + 1}", queue_id=0)


def closed(keeper: Keeper, segment_id: int, hours_ago: float) -> None:
    """Has a segment been closed so long ago."""
    statement = "UPDATE segment SET closed_at = now() - make_interval(secs => %s) WHERE id = %s"
    keeper.sql(statement, hours_ago * 3600, segment_id)


def bodies(keeper: Keeper, topic: str) -> list[str]:
    """What the messages of the first queue say."""
    return [row.body.decode() for row in keeper.read(topic)]


async def received(group: str, topic: str) -> list[str]:
    """The bodies of what a consumer of the group receives and acks."""
    deliveries = await receives.receive(group, Receive(topic=topic))
    if deliveries:
        await writer.run(settling.Ack(group, [delivery.receipt_handle for delivery in deliveries]))
    return [str(delivery.message.body) for delivery in deliveries]


async def move_due_times(keeper: Keeper) -> None:
    """Has everything that is delayed due now."""
    await asyncio.to_thread(keeper.sql, "UPDATE consume_queue SET tags_code = 0 WHERE real_topic_id IS NOT NULL")
    await asyncio.to_thread(keeper.sql, "UPDATE timer SET due_at = now()")
