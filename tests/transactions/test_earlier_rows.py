"""Transactions whose one message lies in arrays of one element, as it did before it had columns of its own."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from mqbroker_client import Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.running import RunningBroker
from tests.broker.tellings import told
from tests.broker.wire import Answer, Wire

COLUMNS = ("log_offset", "message_id", "topic_id", "queue_id")
LAST_OF = {"half_message": "tags_code", "operation": "queue_offset"}


@pytest.fixture
def database(broker: RunningBroker, orders: str) -> Iterator[psycopg.Connection[Any]]:
    """A session in the topic's database."""
    with psycopg.connect(broker.database_of(orders), autocommit=True) as connection:
        yield connection


def age(database: psycopg.Connection[Any], table: str, transaction_id: object) -> None:
    """Gives a transaction's row in the table the form that it had."""
    columns = (*COLUMNS, LAST_OF[table])
    changes = ", ".join(f"{name}s = ARRAY[{name}], {name} = NULL" for name in columns)
    done = database.execute(f"UPDATE {table} SET {changes} WHERE transaction_id = %s".encode(), (transaction_id,))
    assert done.rowcount == 1


def end(wire: Wire, producer: Producer, transaction_id: object, state: str) -> Answer:
    """Calls the end of a transaction."""
    return wire.post(f"/v1/transactions/{transaction_id}/end", {"producer_group": producer.group, "state": state})


@pytest.mark.parametrize("state", ["COMMIT", "ROLLBACK"])
def test_an_earlier_half_message_is_found_and_ended_as_any_other(
    wire: Wire,
    producer: Producer,
    consumer: Consumer,
    orders: str,
    database: psycopg.Connection[Any],
    state: str,
) -> None:
    transaction = producer.begin(orders, b"order 1", tags="paid")
    found = told(wire, transaction.transaction_id)
    age(database, "half_message", transaction.transaction_id)

    again = told(wire, transaction.transaction_id)
    ended = end(wire, producer, transaction.transaction_id, state)

    assert again == found
    assert ended.document["messages"][0]["message_id"] == str(transaction.message_id)
    assert bodies(consumer.receive(orders)) == ([b"order 1"] if state == "COMMIT" else [])


@pytest.mark.parametrize("state", ["COMMIT", "ROLLBACK"])
def test_an_earlier_decision_is_answered_and_listed_as_any_other(
    wire: Wire, producer: Producer, orders: str, database: psycopg.Connection[Any], state: str
) -> None:
    transaction_id = producer.begin(orders, b"order 1").transaction_id
    ended = end(wire, producer, transaction_id, state)
    path = f"/v1/transactions?producer_group={producer.group}"
    before = [told(wire, transaction_id), wire.get(path).document["results"]]
    age(database, "operation", transaction_id)

    again = end(wire, producer, transaction_id, state)

    assert (again.status, again.document) == (200, ended.document)
    assert [told(wire, transaction_id), wire.get(path).document["results"]] == before


def test_the_begin_of_an_earlier_half_message_is_answered_again(
    wire: Wire, producer: Producer, orders: str, database: psycopg.Connection[Any]
) -> None:
    half = {"topic": orders, "body": "order 1", "producer_group": producer.group, "transaction_id": str(uuid4())}
    first = wire.post("/v1/transactions", half).document
    age(database, "half_message", half["transaction_id"])

    again = wire.post("/v1/transactions", half)

    assert again.status == 200
    assert again.document == {**first, "duplicate": True, "next_check_at": again.document["next_check_at"]}


def test_an_earlier_half_message_is_asked_about_as_any_other(
    wire: Wire, producer: Producer, orders: str, database: psycopg.Connection[Any]
) -> None:
    transaction = producer.begin(orders, b"order 1", check_immunity_seconds=60)
    age(database, "half_message", transaction.transaction_id)
    asked = wire.post(f"/v1/transactions/{transaction.transaction_id}/check", {})
    path = f"/v1/producer-groups/{producer.group}/checks/receive"

    [check] = wire.post(path, {"max_transactions": 1, "wait_seconds": 5}).document["transactions"]

    assert asked.status < 300
    assert (check["transaction_id"], check["body"]) == (str(transaction.transaction_id), "order 1")
