"""Offsets: where a group stands, and its reset to another offset, which a dry run answers exactly beforehand."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.running import RunningBroker
from tests.broker.tellings import received_until_empty
from tests.broker.wire import Answer, Document, Wire, problem


@pytest.fixture
def times() -> list[str]:
    """When each message of queue 0 was stored."""
    return []


@pytest.fixture
def read(producer: Producer, consumer: Consumer, orders: str, times: list[str], wire: Wire) -> str:
    """A topic of which the group has read three of five messages of queue 0, and none of three of queue 2."""
    for number in range(5):
        sent = wire.post("/v1/messages", {"topic": orders, "body": f"0:{number}", "queue_id": 0})
        times.append(sent.document["stored_at"])
        if number == 2:
            assert len(consumer.receive(orders)) == 3
    for number in range(3):
        producer.send(orders, f"2:{number}".encode(), queue_id=2)
    return orders


def put(wire: Wire, consumer: Consumer, **asked: Any) -> Answer:
    """The answer to a reset."""
    return wire.call("PUT", f"/v1/consumer-groups/{consumer.group}/offsets", json.dumps(asked).encode())


def moves(answer: Answer) -> dict[int, tuple[int, int, int, int]]:
    """Per queue that anything happens in: from, to, replayed, skipped."""
    assert answer.status == 200, answer
    found = {
        move["queue_id"]: (move["from"], move["to"], move["replayed"], move["skipped"])
        for move in answer.document["results"]
    }
    return {queue_id: move for queue_id, move in found.items() if move[0] != move[1]}


def test_a_group_tells_where_it_stands_in_each_queue(wire: Wire, consumer: Consumer, read: str) -> None:
    found = wire.get(f"/v1/consumer-groups/{consumer.group}/offsets?topic={read}").document

    assert found == {
        "group": consumer.group,
        "results": [
            {"topic": read, "queue_id": 0, "next_offset": 3, "min_offset": 0, "max_offset": 5, "lag": 2},
            {"topic": read, "queue_id": 1, "next_offset": 0, "min_offset": 0, "max_offset": 0, "lag": 0},
            {"topic": read, "queue_id": 2, "next_offset": 0, "min_offset": 0, "max_offset": 3, "lag": 3},
            {"topic": read, "queue_id": 3, "next_offset": 0, "min_offset": 0, "max_offset": 0, "lag": 0},
        ],
        "lag": 5,
    }
    assert wire.get(f"/v1/consumer-groups/{consumer.group}/offsets").document == found


@pytest.mark.parametrize(
    ("place", "expected", "left"),
    [
        ({"to": "earliest"}, {0: (3, 0, 3, 0)}, "0:0 0:1 0:2 0:3 0:4 2:0 2:1 2:2"),
        ({"to": "latest"}, {0: (3, 5, 0, 2), 2: (0, 3, 0, 3)}, ""),
        ({"to": 1, "queue_id": 0}, {0: (3, 1, 2, 0)}, "0:1 0:2 0:3 0:4 2:0 2:1 2:2"),
        ({"to": 2, "queue_id": 2}, {2: (0, 2, 0, 2)}, "0:3 0:4 2:2"),
        ({"to": "2000-01-01T00:00:00Z", "queue_id": 0}, {0: (3, 0, 3, 0)}, "0:0 0:1 0:2 0:3 0:4 2:0 2:1 2:2"),
        ({"to": "2999-01-01T00:00:00+02:00"}, {0: (3, 5, 0, 2), 2: (0, 3, 0, 3)}, ""),
    ],
)
def test_a_dry_run_tells_exactly_what_the_reset_does(
    wire: Wire, consumer: Consumer, read: str, place: Document, expected: dict[int, Any], left: str
) -> None:
    dry = put(wire, consumer, topic=read, dry_run=True, **place)

    assert moves(dry) == expected
    assert (dry.document["replayed"], dry.document["skipped"]) == (
        sum(move[2] for move in expected.values()),
        sum(move[3] for move in expected.values()),
    )
    done = put(wire, consumer, topic=read, **place)
    assert done.document == {**dry.document, "dry_run": False}
    assert sorted(bodies(received_until_empty(consumer, read))) == left.encode().split()


def test_a_reset_to_a_time_begins_with_the_first_message_that_was_visible_then(
    wire: Wire, consumer: Consumer, read: str, times: list[str]
) -> None:
    """It became visible a moment after it was stored, and before the next one was."""
    assert moves(put(wire, consumer, topic=read, to=times[2], queue_id=0)) == {0: (3, 2, 1, 0)}


def test_after_a_reset_the_receipts_of_before_prove_nothing(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1", queue_id=0)
    deliveries = consumer.receive(orders)
    put(wire, consumer, topic=orders, to="earliest", queue_id=0)

    assert [settled.status for settled in consumer.ack(deliveries)] == [410]
    [again] = consumer.receive(orders)
    assert (again.body, again.delivery_attempt) == (b"order 1", 1)


def test_a_reset_wakes_who_waits(wire: Wire, producer: Producer, consumer: Consumer, orders: str) -> None:
    producer.send(orders, b"order 1")
    consumer.ack(consumer.receive(orders))
    received = ThreadPoolExecutor(1).submit(consumer.receive, orders, wait_seconds=20)

    put(wire, consumer, topic=orders, to="earliest")

    assert bodies(received.result()) == [b"order 1"]


def test_a_group_that_has_read_nothing_stands_where_it_would_begin(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1", queue_id=0)
    places = []
    for start_at in ("earliest", "latest"):
        Admin(broker.client()).create_consumer_group(f"{consumer.group}-{start_at}", start_at=start_at)
        answer = wire.get(f"/v1/consumer-groups/{consumer.group}-{start_at}/offsets?topic={orders}")
        places.append(answer.document["results"][0]["next_offset"])

    assert places == [0, 1]


@pytest.mark.parametrize(
    ("asked", "status", "code", "detail", "more"),
    [
        (
            {"to": 6, "queue_id": 0},
            416,
            "offset_out_of_range",
            "Queue 0 of {topic} has no offset 6: its offsets begin at 0 and end before 5.",
            {"min_offset": 0, "max_offset": 5},
        ),
        (
            {"to": 0, "queue_id": 4},
            422,
            "queue_illegal",
            "The topic {topic} has no queue 4: its queues are 0 to 3.",
            {},
        ),
        (
            {"to": "yesterday"},
            422,
            "message_illegal",
            "to 'yesterday' is not a place in a queue: give earliest, latest, an offset, or a time such as "
            "2026-01-31T12:00:00Z.",
            {},
        ),
        (
            {"to": "2026-01-31T12:00:00"},
            422,
            "message_illegal",
            "to '2026-01-31T12:00:00' has no time zone: give a time such as 2026-01-31T12:00:00Z.",
            {},
        ),
    ],
)
def test_a_reset_to_no_place_is_refused_and_changes_nothing(
    wire: Wire, consumer: Consumer, read: str, asked: Document, status: int, code: str, detail: str, more: Document
) -> None:
    expected = problem(status, code, detail.replace("{topic}", read), **more)

    assert put(wire, consumer, topic=read, **asked).problem == expected
    assert wire.get(f"/v1/consumer-groups/{consumer.group}/offsets?topic={read}").document["lag"] == 5


def test_a_group_that_does_not_exist_stands_nowhere(wire: Wire, consumer: Consumer, read: str) -> None:
    nobody = Consumer(consumer.broker, "nobody")

    assert put(wire, nobody, topic=read, to="earliest").problem["code"] == "group_not_exist"
    assert wire.get("/v1/consumer-groups/nobody/offsets").problem["code"] == "group_not_exist"
