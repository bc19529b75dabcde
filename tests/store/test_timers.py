"""Timers in pipelined batches: a message that waits for its own time is stored with its timer in one round trip."""

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduling.sending.send import Send
from store.commit import writer
from store.errors import DelayIllegal
from store.messages import Message
from store.naming import topics
from tests.store import ending
from tests.store.keeper import Keeper, fields_of, sent

HOUR = timedelta(hours=1)
TIMERS = "SELECT id, due_at, message_id FROM timer"


def in_an_hour() -> datetime:
    return datetime.now(UTC) + HOUR


@pytest.fixture(params=["delay_seconds", "deliver_at"])
def delay(request: pytest.FixtureRequest) -> dict[str, Any]:
    """An hour, in both ways."""
    return {"delay_seconds": HOUR.total_seconds()} if request.param == "delay_seconds" else {"deliver_at": in_an_hour()}


async def pipelined(body: str, **fields: Any) -> dict[str, Any] | None:
    """What a send is answered by its pipelined batch; None where that left it out."""
    send = Send(Message(topic="orders", body=body, **fields))
    if not send.ready():
        # On a busy machine what this process knows of the topic may be too old.
        await topics.for_sending("orders")
        assert send.ready()
    writer.hand_in(send)
    result = await send.future
    return None if result is None else fields_of(result[0])


def test_a_delayed_message_and_its_timer_are_stored_by_one_pipelined_batch(
    keeper: Keeper, delay: dict[str, Any]
) -> None:
    async def run() -> list[dict[str, Any] | None]:
        await sent("orders", "the first of its queue", queue_id=0)
        plain = (pipelined(f"plain {number}", queue_id=0) for number in range(3))
        return list(await asyncio.gather(*plain, pipelined("delayed", queue_id=0, tags="paid", **delay)))

    *plain, delayed = keeper.do(run())

    assert [one and one["queue_offset"] for one in plain] == [1, 2, 3]
    assert delayed is not None
    assert delayed["queue_offset"] is None
    [timer] = keeper.sql("SELECT t.*, m.tags FROM timer AS t INNER JOIN commit_log AS m ON t.log_offset = m.log_offset")
    assert (timer.message_id, timer.due_at, timer.tags) == (delayed["message_id"], delayed["deliver_at"], "paid")
    assert delayed["deliver_at"] == delay.get("deliver_at", delayed["stored_at"] + HOUR)


def test_a_time_that_is_over_is_left_out_and_one_too_far_ahead_is_refused(keeper: Keeper) -> None:
    past, far = (datetime.now(UTC) + timedelta(days=days) for days in (-1, 41))

    async def run() -> list[Any]:
        await sent("orders", "the first of its queue", queue_id=0)
        left = await asyncio.gather(pipelined("late", deliver_at=past), pipelined("far", deliver_at=far))
        late = sent("orders", "late", queue_id=0, deliver_at=past)
        return [*left, *await asyncio.gather(late, sent("orders", "far", deliver_at=far), return_exceptions=True)]

    first, second, late, refusal = keeper.do(run())

    assert (first, second, late["queue_offset"]) == (None, None, 1)
    assert isinstance(refusal, DelayIllegal)
    assert [row.body for row in keeper.sql("SELECT body FROM commit_log WHERE body = 'far'")] == []
    assert keeper.sql(TIMERS) == []


def test_a_delayed_message_that_is_sent_again_after_a_kill_behind_its_commit_has_the_timer_that_it_has(
    keeper: Keeper, delay: dict[str, Any]
) -> None:
    keeper.send("orders", "the first of its topic")
    message = {"topic": "orders", "body": "order", "message_id": str(uuid.uuid4()), **delay}
    with keeper.start(ending.__name__, json.dumps(message, default=datetime.isoformat)) as killed:
        killed.wait(120)
    fields = {**message, "message_id": uuid.UUID(message["message_id"])}

    answers = [keeper.do(sent(**fields)) for _ in range(2)]

    assert killed.returncode == ending.KILLED
    [timer] = keeper.sql(TIMERS)
    assert answers[0] == answers[1]
    assert (answers[0]["duplicate"], answers[0]["deliver_at"]) == (True, timer.due_at)


def test_the_timers_of_a_segment_that_was_rolled_are_stored_in_the_next_one(
    keeper: Keeper, delay: dict[str, Any]
) -> None:
    keeper.send("orders", "before", **delay)
    keeper.roll()

    after = keeper.send("orders", "after", **delay)

    segments = {row.message_id: row.log_segment for row in keeper.sql("SELECT message_id, log_segment FROM timer")}
    assert len(segments) == 2
    assert [segments[after["message_id"]]] == keeper.segments_of(after["message_id"])


def test_messages_of_one_key_keep_their_order_where_others_of_it_are_delayed(keeper: Keeper) -> None:
    async def run() -> list[dict[str, Any]]:
        await sent("orders", "the first of its queue", queue_id=0)
        delays: list[dict[str, Any]] = [{}, {"delay_seconds": 60}, {}, {"deliver_at": in_an_hour()}]
        sends = [sent("orders", str(n), queue_id=0, sharding_key="k", **delay) for n, delay in enumerate(delays * 10)]
        return list(await asyncio.gather(*sends))

    answers = keeper.do(run())

    offsets = [answer["queue_offset"] for answer in answers if answer["queue_offset"] is not None]
    assert offsets == list(range(1, 21))
    assert len(keeper.sql(TIMERS)) == 20
