"""Delays: a message waits at its level or until its time, and is visible neither before nor much after."""

from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from functools import partial

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.load import Crowd
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire

# On an idle machine it is milliseconds; this says only that a tick was not missed.
LATENESS = timedelta(seconds=3)


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [({"delay_level": 1}, 1), ({"delay_level": 2}, 2), ({"delay_seconds": 0.7}, 0.7)],
    ids=["level 1", "level 2", "0.7 s"],
)
def test_a_delayed_message_becomes_visible_at_its_time(
    wire: Wire, consumer: Consumer, orders: str, delay: Document, seconds: float
) -> None:
    sent = wire.post("/v1/messages", {"topic": orders, "body": "order 1", "tags": "paid", **delay}).document

    [delivery] = eventually(partial(consumer.receive, orders, filter="paid"))

    arrived = datetime.now(UTC)
    deliver_at = datetime.fromisoformat(sent["deliver_at"])
    assert sent["queue_offset"] is None
    assert deliver_at - datetime.fromisoformat(sent["stored_at"]) == timedelta(seconds=seconds)
    assert deliver_at <= arrived < deliver_at + LATENESS
    assert (delivery.body, delivery.queue_id, delivery.queue_offset) == (b"order 1", sent["queue_id"], 0)


def test_what_is_not_due_is_not_read_at_its_level_either(wire: Wire, producer: Producer, orders: str) -> None:
    producer.send(orders, b"order 1", delay_level=5)
    levels = "SCHEDULE_TOPIC_XXXX"

    refusals = [
        wire.post("/v1/consumer-groups/curious/receive", {"topic": levels}),
        wire.get(f"/v1/topics/{levels}/queues/4/messages"),
    ]

    assert {(refusal.status, refusal.document["code"]) for refusal in refusals} == {(403, "topic_forbidden")}


def test_a_time_to_deliver_at_is_kept_to_and_answered_in_utc(wire: Wire, consumer: Consumer, orders: str) -> None:
    deliver_at = datetime.now(UTC) + timedelta(seconds=1.2)
    elsewhere = deliver_at.astimezone(timezone(timedelta(hours=-20)))
    sent = wire.post("/v1/messages", {"topic": orders, "body": "order 1", "deliver_at": elsewhere.isoformat()})

    assert sent.document["deliver_at"] == deliver_at.isoformat().replace("+00:00", "Z")
    assert bodies(eventually(partial(consumer.receive, orders))) == [b"order 1"]
    assert deliver_at <= datetime.now(UTC) < deliver_at + LATENESS


def test_a_time_that_is_over_means_now(producer: Producer, consumer: Consumer, orders: str) -> None:
    sent = producer.send(orders, b"order 1", deliver_at=datetime(2020, 1, 1, tzinfo=UTC))

    assert sent.queue_offset == 0
    assert bodies(consumer.receive(orders)) == [b"order 1"]


def test_a_level_above_the_highest_is_the_highest(wire: Wire, orders: str) -> None:
    highest, above = (
        wire.post("/v1/messages", {"topic": orders, "body": "order 1", "delay_level": level}).document
        for level in (5, 99)
    )

    assert delay_of(above) == delay_of(highest) == timedelta(seconds=3)


def test_messages_of_one_level_become_visible_in_the_order_they_were_sent(
    producer: Producer, consumer: Consumer, orders: str
) -> None:
    sent = [producer.send(orders, f"order {number}".encode(), queue_id=0, delay_level=1) for number in range(20)]

    eventually(lambda: len(consumer.pull(orders, 0, 0).messages) == len(sent))

    page = consumer.pull(orders, 0, 0)
    assert [entry.message.message_id for entry in page.messages] == [one.message_id for one in sent]


async def test_of_many_delayed_messages_each_becomes_visible_once(broker: RunningBroker, orders: str) -> None:
    delays: list[Document] = [{"delay_level": level} for level in (1, 2, 3, 4)]
    delays += [{"delay_seconds": tenths / 10} for tenths in range(1, 21)]
    sent = [{"op": "send", "topic": orders, "body": f"order {number}", "queue_id": 0} for number in range(960)]

    async with Crowd(broker.urls) as crowd:
        for start in range(0, 960, 240):
            await crowd.bulk({**one, **delays[number % 24]} for number, one in enumerate(sent[start : start + 240]))
        found: list[Document] = []
        while len(found) < len(sent):
            _, page = await crowd.get(
                f"/v1/topics/{orders}/queues/0/messages?offset={len(found)}&max=1000&wait_seconds=5"
            )
            assert page["messages"], f"only {len(found)} became visible"
            found += page["messages"]

    assert Counter(entry["message"]["body"] for entry in found) == Counter(one["body"] for one in sent)
    assert [entry["queue_offset"] for entry in found] == list(range(960))


def delay_of(sent: Document) -> timedelta:
    """How long a message waits, by the answer to its send."""
    return datetime.fromisoformat(sent["deliver_at"]) - datetime.fromisoformat(sent["stored_at"])
