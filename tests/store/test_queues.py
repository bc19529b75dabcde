"""Queues: dense offsets in order, however many send at once; a reader that has seen n has missed nothing before n."""

from collections import Counter
from dataclasses import replace

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker.running import RunningBroker
from tests.broker.tails import Seen, fill_and_tail, flaws
from tests.broker.wire import Document, Wire

EACH = 100


async def test_16_senders_at_two_web_processes_and_a_reader_lose_nothing_and_see_nothing_twice(
    broker: RunningBroker, orders: str
) -> None:
    assert await fill_and_tail(broker, orders, EACH) == []


@pytest.mark.parametrize(
    ("mutant", "flaw"),
    [
        ("loses one", "a was lost"),
        ("leaves a hole", "offset 3 follows 1"),
        ("repeats one", "b came 2 times"),
        ("turns two round", "offset 2 follows 0"),
        ("sees a stranger", "x was never sent"),
    ],
)
def test_the_checker_of_tailing_readers_catches_every_flaw(mutant: str, flaw: str) -> None:
    good = [Seen(0, "a"), Seen(1, "b"), Seen(2, "c")]
    assert flaws(good, ["a", "b", "c"]) == []

    seen = {
        "loses one": [Seen(0, "b"), Seen(1, "c")],
        "leaves a hole": [*good[:2], replace(good[2], offset=3)],
        "repeats one": [*good, Seen(3, "b")],
        "turns two round": [good[0], good[2], good[1]],
        "sees a stranger": [*good, Seen(3, "x")],
    }[mutant]

    assert flaw in flaws(seen, ["a", "b", "c"])


def test_messages_of_one_sharding_key_go_to_one_queue_in_the_order_they_were_sent(
    broker: RunningBroker, consumer: Consumer, orders: str
) -> None:
    producers = [Producer(broker.client(web), "order-service") for web in (0, 1)]

    sent = [
        producers[number % 2].send(orders, f"order {number}".encode(), sharding_key="customer-7")
        for number in range(10)
    ]

    [queue_id] = {one.queue_id for one in sent}
    page = consumer.pull(orders, queue_id, 0)
    assert [entry.body for entry in page.messages] == [f"order {number}".encode() for number in range(10)]
    assert [one.queue_offset for one in sent] == list(range(10))


def test_messages_without_a_key_take_the_queues_in_turn(producer: Producer, orders: str) -> None:
    sent = [producer.send(orders, b"order") for _ in range(8)]

    assert Counter(one.queue_id for one in sent) == dict.fromkeys(range(4), 2)


def test_a_send_is_answered_with_its_place(wire: Wire, orders: str) -> None:
    answer = wire.post("/v1/messages", {"topic": orders, "body": "order 1", "queue_id": 3})

    document: Document = answer.document
    assert answer.status == 201
    assert document == {
        "message_id": document["message_id"],
        "topic": orders,
        "queue_id": 3,
        "queue_offset": 0,
        "commit_log_offset": document["commit_log_offset"],
        "send_status": "SEND_OK",
        "stored_at": document["stored_at"],
    }


def test_messages_of_one_key_in_a_bulk_keep_their_order_whatever_their_size(wire: Wire, orders: str) -> None:
    wire.post("/v1/messages", {"topic": orders, "body": "first", "sharding_key": "customer-7"})
    # A body of more than a MiB goes another way than small ones.
    bodies = ["x" * 1_200_000, "small", "y" * 1_200_000, "small", "small"]

    for _ in range(5):
        sends = [{"op": "send", "topic": orders, "body": body, "sharding_key": "customer-7"} for body in bodies]
        offsets = [result["queue_offset"] for result in wire.bulk(*sends)]

        assert offsets == sorted(offsets)
