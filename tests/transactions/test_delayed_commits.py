"""A commit that schedules a delay: its answer says until when, and how it is recalled."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker.polling import eventually
from tests.broker.tellings import told
from tests.broker.wire import Answer, Wire

LONG = [{"delay_level": 5}, {"delay_seconds": 30}]
SHORT = [{"delay_level": 1}, {"delay_seconds": 1}]
NAMES = ["level", "timer"]


@pytest.mark.parametrize("delay", LONG, ids=NAMES)
def test_a_commit_that_schedules_a_delay_gives_what_recalls_it(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str, delay: dict[str, int]
) -> None:
    messages = [{"topic": orders, "body": "now"}, {"topic": orders, "body": "later", **delay}]
    transaction_id = begun(wire, producer, messages=messages)

    now, later = committed(wire, producer, transaction_id).document["messages"]
    recalled = wire.post("/v1/messages/recall", {"recall_handle": later["recall_handle"]})
    _, again = committed(wire, producer, transaction_id).document["messages"]

    seconds = {"delay_level": 3, "delay_seconds": 30}[next(iter(delay))]
    decided_at = datetime.fromisoformat(told(wire, transaction_id)["history"][-1]["at"])
    assert set(now) == {"message_id", "queue_id", "queue_offset"}
    assert abs(datetime.fromisoformat(later["deliver_at"]) - decided_at - timedelta(seconds=seconds)).seconds < 30
    assert (recalled.status, recalled.document["message_id"]) == (200, later["message_id"])
    assert again == {
        "message_id": later["message_id"],
        "queue_id": later["queue_id"],
        "queue_offset": None,
        "recalled": True,
    }


@pytest.mark.parametrize("delay", LONG, ids=NAMES)
def test_a_repeated_commit_is_answered_the_same(
    wire: Wire, producer: Producer, orders: str, delay: dict[str, int]
) -> None:
    transaction_id = begun(wire, producer, topic=orders, body="later", **delay)

    first = committed(wire, producer, transaction_id).document["messages"][0]
    again = committed(wire, producer, transaction_id).document["messages"][0]

    assert again["recall_handle"] == first["recall_handle"]
    # A level keeps its time in whole milliseconds, rounded up.
    late = datetime.fromisoformat(again["deliver_at"]) - datetime.fromisoformat(first["deliver_at"])
    assert timedelta(0) <= late < timedelta(milliseconds=1)


@pytest.mark.parametrize("delay", SHORT, ids=NAMES)
def test_a_commit_repeated_after_the_delay_gives_the_offset(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str, delay: dict[str, int]
) -> None:
    transaction_id = begun(wire, producer, topic=orders, body="later", queue_id=0, **delay)
    first = committed(wire, producer, transaction_id).document["messages"][0]
    eventually(lambda: consumer.pull(orders, 0, 0).messages)

    again = committed(wire, producer, transaction_id).document["messages"][0]

    assert (first["queue_offset"], again["queue_offset"], "recall_handle" in again) == (None, 0, False)


def begun(wire: Wire, producer: Producer, **fields: Any) -> str:
    answer = wire.post("/v1/transactions", {"producer_group": producer.group, **fields})
    transaction_id: str = answer.document["transaction_id"]
    return transaction_id


def committed(wire: Wire, producer: Producer, transaction_id: str) -> Answer:
    end = {"producer_group": producer.group, "state": "COMMIT"}
    return wire.post(f"/v1/transactions/{transaction_id}/end", end)
