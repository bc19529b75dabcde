"""Bodies that outlive their segment: what is still needed is appended again before its log goes."""

import asyncio
import uuid
from typing import Any

import pytest

from delivery import reappend as receipt_reappend
from delivery.receipts import expiry, settling
from delivery.receive import receives
from delivery.receive.deliveries import Delivery
from delivery.receive.receives import Receive
from scheduling import reappend as timer_reappends
from scheduling import release
from scheduling.publish import Publication
from store.commit import writer
from store.errors import Refusal
from store.segments import lifecycle, retention
from tests.broker import characters
from tests.store.keeper import Keeper, sent
from tests.store.publishing import Publish
from transactions import discards
from transactions.operations.begin import Begin
from transactions.operations.end import End, EndTransaction
from transactions.operations.validation import BeginTransaction
from transactions.reads import history

DAY_SECONDS = 86400


@pytest.fixture
def payments() -> str:
    """A group of producers that is made at its first use."""
    return characters.name("payments")


@pytest.fixture
def coupons() -> str:
    """A group of consumers that is made at its first use."""
    return characters.name("coupons")


def test_a_timer_delivers_its_message_long_after_its_segment_went(keeper: Keeper, orders: str) -> None:
    fields = {"tags": "a", "keys": ["k1", "k2"], "properties": {"region": "eu"}, "sharding_key": "s"}
    answer = keeper.send(orders, "paid", delay_seconds=DAY_SECONDS, **fields)
    [first] = keeper.sql("SELECT * FROM commit_log")
    for _ in range(6):
        keeper.roll()
        keeper.drop_old()
        keeper.do(timer_reappends.run())
    assert keeper.states()[3] == "dropped"

    keeper.sql("UPDATE timer SET due_at = now()")
    keeper.do(release.run(ahead_seconds=0))

    [entry] = keeper.read(orders, answer["queue_id"])
    assert entry.log_offset > first.log_offset
    same = set(first._fields) - {"segment_id", "log_offset"}
    assert {name: getattr(entry, name) for name in same} == {name: getattr(first, name) for name in same}


def test_no_log_goes_before_its_timers_have_moved(keeper: Keeper, orders: str) -> None:
    keeper.send(orders, "paid", delay_seconds=DAY_SECONDS)
    keeper.roll()
    keeper.roll()

    keeper.drop_old()
    assert keeper.partitions(1)["commit_log"] == "attached"

    assert keeper.do(timer_reappends.run()) == 1
    assert keeper.do(timer_reappends.run()) == 0
    keeper.drop_old()
    assert keeper.partitions(1)["commit_log"] == "missing"


def test_a_timer_is_left_alone_while_its_segment_stays(keeper: Keeper, orders: str) -> None:
    message_id = keeper.send(orders, "paid", delay_seconds=DAY_SECONDS)["message_id"]
    keeper.roll()
    keeper.roll()

    assert keeper.do(timer_reappends.run()) == 0
    assert keeper.segments_of(message_id) == [1]


def test_many_timers_move_in_steps_of_bounded_size(keeper: Keeper, orders: str) -> None:
    async def send_many() -> None:
        large = "x" * 1_000_000
        await asyncio.gather(*(sent(orders, f"order {number}", delay_seconds=DAY_SECONDS) for number in range(1200)))
        # Not at once: a loaded machine may take longer for 20 MB than a batch may take.
        for _ in range(20):
            await sent(orders, large, delay_seconds=DAY_SECONDS)

    keeper.do(send_many())
    keeper.roll()
    keeper.roll()
    keeper.drop_old()

    assert keeper.do(timer_reappends.run()) == 1220

    assert keeper.sql("SELECT DISTINCT log_segment FROM timer") == [(3,)]
    [[whole]] = keeper.sql(
        "SELECT count(*) FROM timer t JOIN commit_log m ON m.segment_id = t.log_segment"
        " AND m.log_offset = t.log_offset AND m.message_id = t.message_id"
    )
    assert whole == 1220


def test_two_workers_that_renew_at_once_move_each_timer_once(keeper: Keeper, orders: str) -> None:
    async def send_many() -> None:
        await asyncio.gather(*(sent(orders, "order", delay_seconds=DAY_SECONDS) for _ in range(300)))

    async def renew_twice() -> int:
        return sum(await asyncio.gather(timer_reappends.run(), timer_reappends.run()))

    keeper.do(send_many())
    keeper.roll()
    keeper.roll()
    keeper.drop_old()

    assert keeper.do(renew_twice()) == 300
    assert keeper.sql("SELECT count(*) FROM commit_log WHERE segment_id = 3") == [(300,)]


def test_a_message_that_several_need_is_appended_again_once(keeper: Keeper, orders: str, coupons: str) -> None:
    keeper.send(orders, "order 1", queue_id=0)
    for group in (coupons, f"{coupons}-2"):
        keeper.do(received(group, orders))
    keeper.roll()
    keeper.roll()
    keeper.drop_old()

    assert keeper.do(receipt_reappend.run()) == 2
    assert keeper.sql("SELECT log_segment, count(*) FROM receipt GROUP BY 1") == [(3, 2)]
    assert keeper.sql("SELECT count(*) FROM commit_log WHERE segment_id = 3") == [(1,)]


def test_a_delivery_in_flight_comes_again_although_its_segment_went(keeper: Keeper, orders: str, coupons: str) -> None:
    keeper.send(orders, "order 1", queue_id=0)
    keeper.do(received(coupons, orders))
    for _ in range(3):
        keeper.roll()
        keeper.drop_old()
        keeper.do(receipt_reappend.run())
    assert keeper.states()[1] == "dropped"

    keeper.sql("UPDATE receipt SET expires_at = now()")
    keeper.sql("UPDATE bundle SET expires_at = now()")
    keeper.do(expiry.run())
    keeper.sql("UPDATE consume_queue SET tags_code = 0 WHERE real_topic_id IS NOT NULL")
    keeper.do(release.run(ahead_seconds=0))

    [delivery] = keeper.do(received(coupons, orders))
    assert (delivery.message.body, delivery.delivery_attempt) == ("order 1", 2)


def test_a_delivery_can_be_acked_while_it_moves(keeper: Keeper, orders: str, coupons: str) -> None:
    keeper.send(orders, "order 1", queue_id=0)
    [delivery] = keeper.do(received(coupons, orders))
    keeper.roll()
    keeper.roll()
    keeper.drop_old()

    async def ack_and_renew() -> Any:
        renewing = asyncio.ensure_future(receipt_reappend.run())
        ack = settling.Ack(coupons, [delivery.receipt_handle])
        await writer.run(ack)
        acked = ack.outcomes()
        await renewing
        return acked

    assert keeper.do(ack_and_renew()) == [None]
    assert keeper.sql("SELECT (SELECT count(*) FROM receipt) + (SELECT count(*) FROM bundle)") == [(0,)]


def test_a_bundle_that_is_being_settled_is_not_moved(keeper: Keeper, orders: str, coupons: str) -> None:
    keeper.sql("INSERT INTO heartbeat (process, kind, beaten_at, bundles_at) VALUES ('web', 'web', now(), now())")
    keeper.do(received(coupons, orders))
    keeper.send(orders, "order 1", queue_id=0)
    keeper.send(orders, "order 2", queue_id=0)
    assert len(keeper.do(received(coupons, orders))) == 2
    assert (keeper.roll(), keeper.roll(), bool(keeper.drop_old())) == (1, 2, True)
    with keeper.session() as settler:
        assert settler.execute("DELETE FROM bundle").rowcount == 1
        assert keeper.do(receipt_reappend.run()) == 0
    assert keeper.sql("SELECT FROM receipt") == []


def test_a_half_whose_group_is_gone_is_discarded_by_its_age_and_frees_its_segment(
    keeper: Keeper, orders: str, payments: str
) -> None:
    keeper.do(begun(payments, orders))
    keeper.sql("DELETE FROM producer_group")
    keeper.roll()
    keeper.roll()
    keeper.drop_old()
    assert keeper.do(discards.run_outdated()) == 0
    keeper.sql("UPDATE half_message SET stored_at = now() - interval '73 hours'")

    assert keeper.do(discards.run_outdated()) == keeper.do(discards.roll_back_leftovers()) == 1

    keeper.drop_old()
    assert keeper.states()[1] == "dropped"


def test_an_undecided_half_is_discarded_and_then_rolled_back_before_its_segment_goes(
    keeper: Keeper, orders: str, payments: str
) -> None:
    transaction_id = keeper.do(begun(payments, orders))
    keeper.roll()
    keeper.roll()
    keeper.drop_old()
    assert keeper.do(discards.roll_back_leftovers()) == 0
    keeper.sql("UPDATE half_message SET stored_at = now() - interval '73 hours'")
    assert keeper.do(discards.run_outdated()) == 1
    keeper.drop_old()
    assert keeper.states()[1] == "closed"

    assert keeper.do(discards.roll_back_leftovers()) == 1

    keeper.drop_old()
    assert keeper.states()[1] == "dropped"
    found = keeper.do(history.of(transaction_id))
    assert found.state == "ROLLED_BACK"
    assert [(event.event, event.by) for event in found.history][1:] == [
        ("discard", "limit"),
        ("end", "limit"),
    ]
    with pytest.raises(Refusal, match="is already ROLLED_BACK, decided by limit: this COMMIT comes"):
        keeper.do(writer.run(End.of_producer(transaction_id, EndTransaction(producer_group=payments, state="COMMIT"))))


def test_a_half_older_than_the_retention_is_not_resumed_but_can_be_decided(
    keeper: Keeper, orders: str, payments: str
) -> None:
    transaction_id = keeper.do(begun(payments, orders))
    keeper.sql("UPDATE half_message SET stored_at = now() - interval '73 hours'")
    keeper.do(discards.run_outdated())

    with pytest.raises(Refusal) as refused:
        keeper.do(discards.resume(transaction_id, "the shop is back"))

    assert (refused.value.code, refused.value.detail) == (
        "transaction_discarded",
        f"Transaction {transaction_id} is older than the retention of 72 hours, so it cannot be checked again: "
        f"decide it at /v1/discarded/{transaction_id}/resolve.",
    )
    resolved = keeper.do(discards.resolve(transaction_id, "COMMIT", "it was paid"))
    assert resolved.state == "COMMITTED"


def test_an_operator_who_decides_first_is_not_overruled(keeper: Keeper, orders: str, payments: str) -> None:
    transaction_id = keeper.do(begun(payments, orders))
    keeper.sql("UPDATE half_message SET stored_at = now() - interval '73 hours'")
    keeper.do(discards.run_outdated())
    keeper.roll()
    keeper.roll()
    keeper.drop_old()

    async def resolve_and_run() -> Any:
        return await asyncio.gather(
            discards.resolve(transaction_id, "COMMIT", "it was paid"), discards.roll_back_leftovers()
        )

    resolved, rolled_back = keeper.do(resolve_and_run())

    assert (resolved.state, rolled_back) == ("COMMITTED", 0)


@pytest.mark.parametrize(("rolls", "where"), [(0, (1, 1)), (1, (1, 2)), (2, (3, 3))])
def test_an_entry_points_into_its_own_segment_or_the_one_before(
    keeper: Keeper, orders: str, rolls: int, where: tuple[int, int]
) -> None:
    keeper.send(orders, "paid", delay_seconds=DAY_SECONDS)
    [timer] = keeper.sql("SELECT * FROM timer")
    for _ in range(rolls):
        keeper.roll()

    publication = Publication(
        None, timer.topic_id, timer.queue_id, timer.log_segment, timer.log_offset, timer.tags_code
    )
    keeper.do(writer.run(Publish(publication)))

    [entry] = keeper.sql("SELECT log_segment, segment_id FROM consume_queue")
    assert tuple(entry) == where
    assert [row.body for row in keeper.read(orders, timer.queue_id)] == [b"paid"]


def test_a_body_that_is_gone_fails_only_the_request_that_needs_it(keeper: Keeper, orders: str) -> None:
    keeper.send(orders, "paid")
    keeper.roll()
    keeper.roll()

    with pytest.raises(LookupError, match="The body at 99 of segment 1 is gone"):
        keeper.do(writer.run(Publish(Publication(None, 3, 0, 1, 99, 0))))

    assert keeper.send(orders, "the next one")["send_status"] == "SEND_OK"


def test_nothing_moves_while_nothing_goes(keeper: Keeper) -> None:
    keeper.do(lifecycle.run())

    assert keeper.do(retention.leaving()) is None
    assert (
        keeper.do(timer_reappends.run())
        == keeper.do(receipt_reappend.run())
        == keeper.do(discards.roll_back_leftovers())
        == 0
    )


async def begun(group: str, topic: str) -> uuid.UUID:
    """A transaction that waits for its decision."""
    begun = await writer.run(Begin(BeginTransaction(producer_group=group, topic=topic, body="order 1")))
    return begun.transaction_id


async def received(group: str, topic: str) -> list[Delivery]:
    """What a consumer of the group receives."""
    return await receives.receive(group, Receive(topic=topic))
