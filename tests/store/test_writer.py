"""The writers: what a pipelined batch leaves out is written all the same, and no request waits for a foreign lock."""

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
import structlog

from scheduling.sending.send import Send
from store.commit import writer
from store.commit.waiting import WORTH
from store.errors import Refusal, SystemBusy
from store.messages import Message
from tests.broker import databases
from tests.broker.polling import at_this_load
from tests.store.keeper import Keeper, fields_of
from transactions.errors import TransactionEnded
from transactions.operations.begin import Begin
from transactions.operations.end import End, EndTransaction
from transactions.operations.validation import BeginTransaction

GROUP = "order-service"
TOPIC = "orders"
PROMISED_SECONDS = 5.0


@pytest.fixture(scope="module")
def keeper(prepared: str) -> Iterator[Keeper]:
    """This process's broker code, on a database of its own."""
    with databases.copied(prepared) as database_url, Keeper(database_url) as keeper:
        yield keeper


async def send(body: str, **fields: Any) -> dict[str, Any]:
    """Sends one message."""
    return fields_of((await writer.run(Send(Message(topic=TOPIC, body=body, **fields))))[0])


async def begin(body: str, **fields: Any) -> dict[str, Any]:
    """Begins a transaction of one message."""
    begun = await writer.run(Begin(BeginTransaction(topic=TOPIC, body=body, producer_group=GROUP, **fields)))
    return fields_of(begun)


async def end(transaction_id: uuid.UUID, state: Any = "COMMIT") -> dict[str, Any]:
    """Ends a transaction."""
    ended = await writer.run(End.of_producer(transaction_id, EndTransaction(producer_group=GROUP, state=state)))
    return fields_of(ended)


async def outcome(work: Coroutine[Any, Any, Any]) -> Any:
    """What a request is answered, a refusal among it."""
    try:
        return await work
    except Refusal as refusal:
        return refusal


async def transact(number: int) -> dict[str, Any]:
    """A transaction, every third of them rolled back."""
    begun = await begin(f"half {number}", transaction_id=uuid.uuid4() if number % 2 else None)
    return await end(begun["transaction_id"], "COMMIT" if number % 3 else "ROLLBACK")


def test_offsets_are_dense_over_sends_and_transactions(keeper: Keeper) -> None:
    async def run() -> None:
        for _ in range(4):
            await asyncio.gather(*(send("send") for _ in range(100)), *(transact(number) for number in range(100)))

    keeper.do(run())

    queues = keeper.sql(
        "SELECT queue_id, count(*) AS entries, min(queue_offset) AS first, max(queue_offset) + 1 AS next "
        "FROM consume_queue "
        "WHERE topic_id = (SELECT id FROM topic WHERE name = %s) GROUP BY queue_id",
        TOPIC,
    )
    assert sum(queue.entries for queue in queues) == 4 * (100 + 66)
    assert all(queue.first == 0 and queue.entries == queue.next for queue in queues)
    assert keeper.sql("SELECT count(*) AS pending FROM half_message")[0].pending == 0


def test_a_repeat_is_answered_with_the_first_answer(keeper: Keeper) -> None:
    async def run() -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
        sent, begun = uuid.uuid4(), uuid.uuid4()
        several = await asyncio.gather(*(send("the same", message_id=sent) for _ in range(5)))
        halves_ = await asyncio.gather(*(begin("the same", transaction_id=begun) for _ in range(5)))
        ended = await asyncio.gather(*(end(begun) for _ in range(5)))
        return several, halves_, ended

    several, begun, ended = keeper.do(run())

    assert len({(each["queue_id"], each["queue_offset"], each["commit_log_offset"]) for each in several}) == 1
    assert Counter("duplicate" in each for each in several) == {True: 4, False: 1}
    assert Counter("duplicate" in each for each in begun) == {True: 4, False: 1}
    assert all(each == ended[0] for each in ended)
    assert ended[0]["messages"][0]["queue_offset"] is not None


def test_opposite_ends_have_one_winner(keeper: Keeper) -> None:
    async def run() -> list[list[Any]]:
        begun = await asyncio.gather(*(begin(f"race {number}") for number in range(50)))
        ids = [each["transaction_id"] for each in begun]
        races = [(outcome(end(id_, "COMMIT")), outcome(end(id_, "ROLLBACK"))) for id_ in ids]
        return [list(await asyncio.gather(*race)) for race in races]

    for pair in keeper.do(run()):
        assert Counter(isinstance(each, TransactionEnded) for each in pair) == {True: 1, False: 1}, pair


def test_a_half_message_whose_row_is_locked_stops_no_other_request(keeper: Keeper) -> None:
    async def run() -> tuple[list[float], Any]:
        locked, *others = [each["transaction_id"] for each in await asyncio.gather(*(begin("half") for _ in range(5)))]
        with keeper.session() as session:
            session.execute("SELECT FROM half_message WHERE transaction_id = %s FOR UPDATE", (locked,))
            stuck = asyncio.create_task(outcome(end(locked)))
            seconds = []
            for other in others:
                began = time.monotonic()
                await asyncio.gather(end(other), send("meanwhile"), begin("meanwhile"))
                seconds.append(time.monotonic() - began)
            session.rollback()
        return seconds, await stuck

    seconds, stuck = keeper.do(run())

    assert max(seconds) < at_this_load(1)
    assert stuck["state"] == "COMMITTED"


def test_a_half_message_whose_row_is_locked_stops_no_stepwise_request(keeper: Keeper) -> None:
    """Repeats go the stepwise way, as the end of the locked one does."""

    async def run() -> tuple[list[float], Any]:
        repeated = [uuid.uuid4() for _ in range(6)]
        await asyncio.gather(*(send("repeated", message_id=id_) for id_ in repeated))
        locked = (await begin("half"))["transaction_id"]
        with keeper.session() as session:
            session.execute("SELECT FROM half_message WHERE transaction_id = %s FOR UPDATE", (locked,))
            stuck = asyncio.create_task(outcome(end(locked)))
            await asyncio.to_thread(wait_for_a_second_try, keeper, "transactionid")
            seconds = []
            for id_ in repeated:
                began = time.monotonic()
                await send("repeated", message_id=id_)
                seconds.append(time.monotonic() - began)
            session.rollback()
        return seconds, await stuck

    seconds, stuck = keeper.do(run())

    assert max(seconds) < at_this_load(0.5)
    assert stuck["state"] == "COMMITTED"


@pytest.mark.parametrize("count", [1, 40])
def test_ends_of_rows_that_another_session_keeps_are_refused_within_5_seconds_with_the_reason(
    keeper: Keeper, count: int
) -> None:
    async def run() -> tuple[list[Any], float, int]:
        begun = await asyncio.gather(*(begin(f"kept {number}") for number in range(count)))
        ids = [each["transaction_id"] for each in begun]
        with keeper.session() as session:
            session.execute("SET application_name = 'a report'")
            session.execute("SELECT FROM half_message WHERE transaction_id = any(%s) FOR UPDATE", (ids,))
            began = time.monotonic()
            refused = await asyncio.gather(*(outcome(end(id_)) for id_ in ids))
            seconds = time.monotonic() - began
            pid = session.info.backend_pid
        assert [each["state"] for each in await asyncio.gather(*map(end, ids))] == ["COMMITTED"] * count
        return refused, seconds, pid

    refused, seconds, pid = keeper.do(run())

    assert seconds < PROMISED_SECONDS
    [sentence] = {refusal.detail for refusal in refused if isinstance(refusal, SystemBusy)}
    assert len(refused) == count
    assert sentence == (
        f"Another session (PostgreSQL's process {pid}, application 'a report') holds a lock in the database: "
        "nothing was stored, try again in a second."
    )


def test_a_queue_that_is_locked_elsewhere_delays_the_others_by_a_moment_only(keeper: Keeper) -> None:
    async def run() -> tuple[float, dict[str, Any]]:
        await asyncio.gather(*(send("first", queue_id=number) for number in range(4)))
        [topic] = await asyncio.to_thread(keeper.sql, "SELECT id FROM topic WHERE name = %s", TOPIC)
        with keeper.session() as session:
            session.execute("SELECT pg_advisory_xact_lock(%s, 2)", (topic.id,))
            stuck = asyncio.create_task(send("stuck", queue_id=2))
            began = time.monotonic()
            for _ in range(5):
                await asyncio.gather(*(send("meanwhile", queue_id=number) for number in (0, 1, 3)))
            seconds = time.monotonic() - began
            session.rollback()
        return seconds, await stuck

    seconds, stuck = keeper.do(run())

    assert seconds < at_this_load(2)
    assert stuck["queue_id"] == 2


def test_a_batch_that_is_sent_for_a_segment_that_was_rolled_is_sent_again(keeper: Keeper) -> None:
    async def both() -> tuple[dict[str, Any], dict[str, Any]]:
        sent, ended = await asyncio.gather(send("after", queue_id=0), transact(1))
        return sent, ended

    before = keeper.do(send("before", queue_id=0))
    keeper.roll()
    first, _ = keeper.do(both())
    second, ended = keeper.do(both())

    assert [first["queue_offset"], second["queue_offset"]] == [before["queue_offset"] + 1, before["queue_offset"] + 2]
    assert ended["state"] == "COMMITTED"


def test_messages_of_one_key_keep_their_order_when_the_first_is_left_out(keeper: Keeper) -> None:
    async def run() -> list[dict[str, Any]]:
        await send("first", sharding_key="k", queue_id=1)
        [topic] = await asyncio.to_thread(keeper.sql, "SELECT id FROM topic WHERE name = %s", TOPIC)
        with keeper.session() as session:
            session.execute("SELECT pg_advisory_xact_lock(%s, 1)", (topic.id,))
            earlier = asyncio.create_task(send("earlier", sharding_key="k", queue_id=1))
            await asyncio.sleep(0)
            later = [asyncio.create_task(send(f"later {n}", sharding_key="k", queue_id=1)) for n in range(20)]
            await asyncio.to_thread(wait_for_a_second_try, keeper)
            session.rollback()
        return list(await asyncio.gather(earlier, *later))

    offsets = [answer["queue_offset"] for answer in keeper.do(run())]

    assert offsets == sorted(offsets)


def test_no_batch_comes_between_two_tries_of_one_with_a_key(keeper: Keeper) -> None:
    """The queue becomes free when the first try has failed; the later messages are enough for a batch of their own."""
    waiting = "SELECT pid, xact_start FROM pg_stat_activity WHERE wait_event = 'advisory'"

    async def run() -> list[dict[str, Any]]:
        await send("first", sharding_key="k", queue_id=2)
        [topic] = await asyncio.to_thread(keeper.sql, "SELECT id FROM topic WHERE name = %s", TOPIC)
        tries: set[Any] = set()
        with keeper.session() as session, keeper.session() as watch:
            watch.autocommit = True
            session.execute("SELECT pg_advisory_xact_lock(%s, 2)", (topic.id,))
            sends = [asyncio.create_task(send("earlier", sharding_key="k", queue_id=2))]
            for _ in range(4):
                # The batch is sent after a turn that adds no operation.
                await asyncio.sleep(0)
            sends += [asyncio.create_task(send(f"later {n}", sharding_key="k", queue_id=2)) for n in range(2 * WORTH)]
            while len(tries) < 2:
                tries.update(await asyncio.to_thread(lambda: watch.execute(waiting).fetchall()))
            session.rollback()
        return list(await asyncio.gather(*sends))

    offsets = [answer["queue_offset"] for answer in keeper.do(run())]

    assert offsets == sorted(offsets)


def test_a_request_that_postgresql_refuses_fails_no_other_of_its_batch(keeper: Keeper) -> None:
    """Text with a NUL fails the statement: halves of the batch are sent again until it is alone."""

    async def run() -> tuple[list[dict[str, Any]], dict[str, Any], Any]:
        await asyncio.gather(*(send("first", queue_id=number) for number in range(4)))
        good = [asyncio.create_task(send(f"good {number}", queue_id=number % 4)) for number in range(40)]
        half = asyncio.create_task(begin("good half"))
        refused = asyncio.create_task(writer.run(Send(Message(topic=TOPIC, body="bad"), traceparent="\x00")))
        [bad] = await asyncio.gather(refused, return_exceptions=True)
        return list(await asyncio.gather(*good)), await half, bad

    with structlog.testing.capture_logs() as records:
        good, half, bad = keeper.do(run())

    assert isinstance(bad, Exception)
    assert half["state"] == "PREPARED"
    offsets = {(each["queue_id"], each["queue_offset"]) for each in good}
    assert len(offsets) == 40
    assert not keeper.sql("SELECT FROM commit_log WHERE body = 'bad'")
    stepwise = [record["operations"] for record in records if record["event"] == "a batch is written stepwise"]
    assert stepwise == [1]


def wait_for_a_second_try(keeper: Keeper, lock: str = "advisory") -> None:
    """Until a stepwise batch waits for such a lock: the pipelined one before it has passed over what is locked."""
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = %s AND query NOT LIKE '%%try_advisory%%'"
    deadline = time.monotonic() + 10
    while not keeper.sql(waiting, lock):
        assert time.monotonic() < deadline, "no stepwise batch waits for the lock"
        time.sleep(0.005)
