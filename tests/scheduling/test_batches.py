"""Batches: one topic, one queue, consecutive offsets, all or nothing; refused with RocketMQ's reasons."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from mqbroker_client import Consumer, Message, Producer

from tests.broker import characters
from tests.broker.wire import Document, Wire, problem


def test_a_batch_takes_consecutive_offsets_of_one_queue(producer: Producer, consumer: Consumer, orders: str) -> None:
    producer.send(orders, b"before", queue_id=1)
    messages = [Message(orders, f"order {number}".encode(), queue_id=1) for number in range(5)]

    sent = producer.send_batch(orders, messages)

    assert [(one.queue_id, one.queue_offset) for one in sent] == [(1, offset) for offset in range(1, 6)]
    found = consumer.pull(orders, 1, 1).messages
    assert [entry.message.message_id for entry in found] == [message.message_id for message in messages]


def test_a_batch_that_is_sent_again_is_stored_once(producer: Producer, consumer: Consumer, orders: str) -> None:
    messages = [Message(orders, f"order {number}".encode(), queue_id=1) for number in range(5)]
    first = producer.send_batch(orders, messages)

    again = producer.send_batch(orders, messages)

    assert [one.queue_offset for one in again] == [one.queue_offset for one in first]
    assert all(one.duplicate for one in again)
    assert consumer.pull(orders, 1, 0).max_offset == 5


def test_a_repeat_leaves_no_gap_before_what_is_written_with_it(wire: Wire, consumer: Consumer, orders: str) -> None:
    known = {"op": "send", "topic": orders, "body": "known", "queue_id": 1, "message_id": str(uuid4())}
    [first] = wire.bulk(known)
    new = [{"op": "send", "topic": orders, "body": f"new {number}", "queue_id": number % 2} for number in range(6)]

    results = wire.bulk(new[0], new[1], known, *new[2:])

    assert first["queue_offset"] == 0
    assert [(one["queue_id"], one["queue_offset"]) for one in results] == [
        (0, 0),
        (1, 1),
        (1, 0),
        (0, 1),
        (1, 2),
        (0, 2),
        (1, 3),
    ]  # fmt: skip -- one line, as the offsets stand in the two queues
    assert [one.get("duplicate", False) for one in results] == [False, False, True, False, False, False, False]
    found = consumer.pull(orders, 1, 0).messages
    assert [entry.message.body for entry in found] == [b"known", b"new 1", b"new 3", b"new 5"]


def test_the_ids_of_a_batch_have_its_time_and_differ(wire: Wire, orders: str) -> None:
    before = datetime.now(UTC)

    answer = wire.post("/v1/messages/batch", {"topic": orders, "messages": [{"body": "x"}] * 300})

    ids = [UUID(one["message_id"]) for one in answer.document["results"]]
    assert len({id_.int & (1 << 62) - 1 for id_ in ids}) == 300
    assert {(id_.version, id_.variant) for id_ in ids} == {(7, "specified in RFC 4122")}
    [milliseconds] = {id_.int >> 80 for id_ in ids}
    assert before - timedelta(milliseconds=1) <= datetime.fromtimestamp(milliseconds / 1000, UTC) <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("messages", "status", "code"),
    [
        ([], 422, "batch_illegal"),
        ([{"body": "x", "delay_level": 1}], 422, "batch_illegal"),
        ([{"body": "x", "delay_seconds": 1}], 422, "batch_illegal"),
        ([{"body": "x", "deliver_at": "2030-01-01T00:00:00Z"}], 422, "batch_illegal"),
        ([{"body": "x", "topic": "coupons"}], 422, "batch_illegal"),
        ([{"body": "x", "check_immunity_seconds": 0}], 422, "batch_illegal"),
        ([{"body": "x", "queue_id": 0}, {"body": "x", "queue_id": 1}], 422, "batch_illegal"),
        ([{"body": "x"}, {"body": "x", "tags": "a|b"}], 422, "message_illegal"),
        ([{"body": "x" * (2 * 1024 * 1024 + 1)}] * 2, 413, "message_too_large"),
    ],
    ids=[
        "empty",
        "level",
        "seconds",
        "time",
        "another topic",
        "immunity",
        "two queues",
        "one bad message",
        "too large",
    ],
)
def test_a_batch_that_cannot_be_one_is_refused_and_nothing_of_it_stored(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str, messages: list[Document], status: int, code: str
) -> None:
    producer.send(orders, b"before", queue_id=0)

    answer = wire.post("/v1/messages/batch", {"topic": orders, "messages": messages})

    assert (answer.status, answer.problem["code"]) == (status, code), answer.document
    assert [consumer.pull(orders, queue, 0).max_offset for queue in range(4)] == [1, 0, 0, 0]


def test_the_reasons_to_refuse_a_batch_are_rocketmqs(wire: Wire, orders: str) -> None:
    def refusal(topic: str, message: Document) -> Document:
        return wire.post("/v1/messages/batch", {"topic": topic, "messages": [{"body": "x"}, message]}).problem

    assert refusal(orders, {"body": "x", "delay_level": 3}) == problem(
        422, "batch_illegal", "TimeDelayLevel is not supported for batching"
    )
    assert refusal("%RETRY%coupon-service", {"body": "x"}) == problem(
        422, "batch_illegal", "Retry Group is not supported for batching"
    )
    assert refusal(orders, {"body": "x", "topic": "coupons"}) == problem(
        422, "batch_illegal", "The topic of the messages in one batch should be the same"
    )
    assert refusal(orders, {"body": "x", "producer_group": "order-service"}) == problem(
        422,
        "batch_illegal",
        "Transactional messages are not supported for batching: use POST /v1/transactions.",
    )


def test_a_batch_whose_answer_is_large_is_answered_also_by_a_process_that_meets_its_topic_first(wire: Wire) -> None:
    topic = characters.name("prices")

    first = wire.post("/v1/messages/batch", {"topic": topic, "messages": [{"body": "x"}] * 1000})

    assert first.status == 201
    assert [one["queue_offset"] for one in first.document["results"]] == list(range(1000))
