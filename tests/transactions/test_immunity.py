"""Immunity: how old a half message is when it is first asked about."""

from datetime import datetime
from typing import Any

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker.wire import Wire, problem

IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"


def test_a_half_message_may_ask_for_a_longer_immunity_but_for_no_shorter_one(producer: Producer, orders: str) -> None:
    longer = producer.begin(orders, b"order 1", check_immunity_seconds=30)
    shorter = producer.begin(orders, b"order 2", check_immunity_seconds=0.1)
    bad = producer.begin(orders, b"order 3", check_immunity_seconds=-7)

    assert [immunity(transaction.transaction_id, producer) for transaction in (longer, shorter, bad)] == [30, 1, 1]


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("30", 30), ("0", 1), ("-1", 1), ("soon", 1), ("30.5", 1), ("", 1)],
    ids=["longer", "shorter", "below 0", "a word", "a fraction", "nothing"],
)
def test_rocketmqs_property_is_the_immunity_and_a_bad_one_the_default(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str, given: str, seconds: float
) -> None:
    properties = {IMMUNITY: given, "region": "eu"}
    half = {"topic": orders, "body": "order 1", "producer_group": producer.group, "properties": properties}

    begun = wire.post("/v1/transactions", half)

    assert begun.status == 201
    assert immunity(begun.document["transaction_id"], producer) == seconds
    end = {"producer_group": producer.group, "state": "COMMIT"}
    wire.post(f"/v1/transactions/{begun.document['transaction_id']}/end", end)
    [delivery] = consumer.receive(orders)
    assert delivery.message.properties == {"region": "eu"}


def test_the_field_goes_before_the_property_and_the_longest_of_several_messages_counts(
    wire: Wire, producer: Producer, orders: str
) -> None:
    def begun(**fields: Any) -> float:
        answer = wire.post("/v1/transactions", {"producer_group": producer.group, **fields})
        return immunity(answer.document["transaction_id"], producer)

    message = {"topic": orders, "body": "order 1", "properties": {IMMUNITY: "30"}}

    assert begun(**message, check_immunity_seconds=20) == 20
    assert begun(messages=[message, {**message, "properties": {IMMUNITY: "40"}}]) == 40


def test_the_property_is_of_transactions_only(wire: Wire, orders: str) -> None:
    sent = wire.post("/v1/messages", {"topic": orders, "body": "order 1", "properties": {IMMUNITY: "30"}})

    assert sent.problem == problem(
        422,
        "message_illegal",
        f"The property {IMMUNITY} is reserved by the broker: use the field check_immunity_seconds of "
        "POST /v1/transactions.",
    )


def test_an_immunity_leaves_time_for_a_check_before_the_retention_ends(
    wire: Wire, producer: Producer, orders: str
) -> None:
    longest = 72 * 3600 - 1 - 60
    half = {"topic": orders, "body": "order 1", "producer_group": producer.group}

    assert wire.post("/v1/transactions", {**half, "check_immunity_seconds": longest}).status == 201
    for too_long in (
        {"check_immunity_seconds": longest + 1},
        {"properties": {IMMUNITY: str(longest + 1)}},
    ):
        assert wire.post("/v1/transactions", {**half, **too_long}).problem == problem(
            422,
            "message_illegal",
            f"check_immunity_seconds {float(longest + 1)} is above the maximum of {longest}: the retention of "
            "72 hours minus the time that one check needs.",
        )


def immunity(transaction_id: object, producer: Producer) -> float:
    """Seconds from the store of a half message to its first check."""
    found = producer.broker.call("GET", f"/v1/transactions/{transaction_id}")
    stored_at, next_check_at = found["history"][0]["at"], found["next_check_at"]
    return (datetime.fromisoformat(next_check_at) - datetime.fromisoformat(stored_at)).total_seconds()
