"""What comes late, segments after its message was stored, finds the message all the same."""

import asyncio
import uuid

import pytest

from delivery import reappend
from delivery.receipts import expiry
from delivery.receive import pull, receives
from delivery.receive.receives import Receive
from scheduling import recalls, release
from scheduling.recalls import AlreadyDelivered
from store.commit import writer
from store.errors import OffsetOutOfRange
from store.process.answer_budget import Hold
from tests.broker import characters
from tests.store.keeper import Keeper, sent
from transactions.operations.begin import Begin
from transactions.operations.end import End, EndTransaction
from transactions.operations.validation import BeginTransaction

DAY_SECONDS = 86400
FAR = "SELECT count(*) FROM consume_queue WHERE log_segment < segment_id - 1"


def test_a_commit_that_comes_segments_later_is_delivered_and_outlives_the_half(keeper: Keeper, orders: str) -> None:
    group = characters.name("payments")
    begin = BeginTransaction(producer_group=group, topic=orders, body="order 1", queue_id=0)
    transaction_id = keeper.do(writer.run(Begin(begin))).transaction_id
    for _ in range(3):
        keeper.roll()

    keeper.do(writer.run(End.of_producer(transaction_id, EndTransaction(producer_group=group, state="COMMIT"))))

    assert keeper.sql(FAR) == [(0,)]
    keeper.drop_old()
    assert keeper.states()[2] == "dropped"
    assert [row.body for row in keeper.read(orders)] == [b"order 1"]


def test_a_retry_that_comes_segments_later_finds_its_message(keeper: Keeper, orders: str) -> None:
    group = characters.name("coupons")
    keeper.send(orders, "order 1", queue_id=0)
    keeper.do(receives.receive(group, Receive(topic=orders)))
    for _ in range(3):
        keeper.roll()

    keeper.sql("UPDATE receipt SET expires_at = now()")
    keeper.sql("UPDATE bundle SET expires_at = now()")
    keeper.do(expiry.run())
    for _ in range(3):
        keeper.roll()
    keeper.sql("UPDATE consume_queue SET tags_code = 0 WHERE real_topic_id IS NOT NULL")
    keeper.do(release.run(ahead_seconds=0))

    assert keeper.sql(FAR) == [(0,)]
    keeper.drop_old()
    [delivery] = keeper.do(receives.receive(group, Receive(topic=orders)))
    assert (delivery.message.body, delivery.delivery_attempt) == ("order 1", 2)


def test_many_timers_of_old_segments_are_released_together(keeper: Keeper, orders: str) -> None:
    async def send_many() -> None:
        await asyncio.gather(*(sent(orders, f"order {n}", queue_id=0, delay_seconds=DAY_SECONDS) for n in range(1500)))

    keeper.do(send_many())
    for _ in range(2):
        keeper.roll()
    keeper.sql("UPDATE timer SET due_at = now()")

    keeper.do(release.run(ahead_seconds=0))

    assert keeper.sql(FAR) == [(0,)]
    assert keeper.sql("SELECT count(*) FROM consume_queue WHERE log_segment = 3") == [(1500,)]


def test_a_send_that_is_repeated_gets_its_first_answer_also_when_its_message_was_appended_again(
    keeper: Keeper, orders: str
) -> None:
    message_id = uuid.uuid4()
    first = keeper.send(orders, "order 1", message_id=message_id, queue_id=0, delay_seconds=DAY_SECONDS)
    for _ in range(2):
        keeper.roll()
    keeper.sql("UPDATE timer SET due_at = now()")
    keeper.do(release.run(ahead_seconds=0))
    assert keeper.segments_of(message_id) == [1, 3]

    again = keeper.send(orders, "order 1", message_id=message_id, queue_id=0, delay_seconds=DAY_SECONDS)

    assert again["duplicate"] is True
    assert again["commit_log_offset"] == first["commit_log_offset"]


def test_a_repeated_send_is_not_answered_as_recalled_where_only_a_retry_keeps_its_message(
    keeper: Keeper, orders: str
) -> None:
    message_id = uuid.uuid4()
    keeper.send(orders, "order 1", message_id=message_id, queue_id=0)
    keeper.do(receives.receive(characters.name("coupons"), Receive(topic=orders)))
    for _ in range(2):
        keeper.roll()
    keeper.drop_old()
    keeper.do(reappend.run())
    keeper.drop_old()
    assert keeper.segments_of(message_id) == [3]

    again = keeper.send(orders, "order 1", message_id=message_id, queue_id=0)

    assert (again["duplicate"], again["queue_offset"], again.get("recalled")) == (True, None, None)


def test_a_message_that_was_delivered_segments_later_is_not_recalled(keeper: Keeper, orders: str) -> None:
    sent = keeper.send(orders, "order 1", queue_id=0, delay_seconds=DAY_SECONDS)
    for _ in range(2):
        keeper.roll()
    keeper.sql("UPDATE timer SET due_at = now()")
    keeper.do(release.run(ahead_seconds=0))
    assert keeper.segments_of(sent["message_id"]) == [1, 3]

    with pytest.raises(AlreadyDelivered, match="its consumers have it"):
        keeper.do(recalls.recall(sent["recall_handle"]))

    # Its entry is dropped before its body; then its fate is unknown.
    keeper.roll()
    keeper.drop_old()
    assert keeper.partitions(3) == dict.fromkeys(keeper.partitions(3), "missing") | {"commit_log": "attached"}
    with pytest.raises(AlreadyDelivered, match="no longer knows whether it was delivered or recalled"):
        keeper.do(recalls.recall(sent["recall_handle"]))


def test_an_offset_below_the_floor_is_out_of_range_also_while_newer_messages_are_there(
    keeper: Keeper, orders: str
) -> None:
    for number in range(3):
        keeper.send(orders, f"order {number}", queue_id=0)
        keeper.roll()
    keeper.send(orders, "order 3", queue_id=0)
    keeper.drop_old()

    with pytest.raises(OffsetOutOfRange) as refused:
        keeper.do(pull.pull(orders, 0, offset=1, max_messages=9, wait_seconds=0, hold=Hold()))

    assert refused.value.extra == {"min_offset": 3, "max_offset": 4}
