"""Holds the rows that tests of the console and of the export write by hand to those that the broker writes."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from mqbroker_client import Producer
from psycopg import sql
from psycopg.rows import dict_row, namedtuple_row

from tests.analytics import writers
from tests.analytics.past import Past
from tests.broker import databases
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire
from tests.console.rows import Broker

FIELDS: dict[str, Any] = {"tags": "paid", "keys": ["order-1"], "properties": {"region": "eu"}}
# The table, and what leads from a transaction to its rows.
LOG = "log_offset IN (SELECT log_offset FROM commit_log WHERE transaction_id = %(id)s)"
ROWS = {
    "commit_log": "transaction_id = %(id)s",
    "consume_queue": LOG,
    "half_message": "transaction_id = %(id)s",
    "operation": "transaction_id = %(id)s",
    "check_attempt": "transaction_id = %(id)s",
}
# Why a check that a poll was given is without an answer.
REASON = "Handed out."
# What is written in words of a closed set: it must be the very word.
WORDS = {"decision", "decided_by", "body_form"}

# Table, column and form of each of a transaction's rows.
Shape = dict[str, list[dict[str, str]]]


def form(column: str, value: object) -> str:
    """What kind of value a column has: its type, a UUID's version, the word of a closed set, the form of a list."""
    if column in WORDS or value is None:
        return repr(value)
    if isinstance(value, list):
        return f"{len(value)} × {sorted({form(column, each) for each in value})}"
    return f"UUIDv{value.version}" if isinstance(value, uuid.UUID) else type(value).__name__


def shape(connection: psycopg.Connection[Any], transaction_id: uuid.UUID) -> Shape:
    """The forms of all rows that a transaction has."""
    cursor = connection.cursor(row_factory=dict_row)
    found = {}
    for table, condition in ROWS.items():
        query = sql.SQL("SELECT * FROM {} WHERE " + condition).format(sql.Identifier(table))
        rows = cursor.execute(query, {"id": transaction_id}).fetchall()
        found[table] = [{column: form(column, value) for column, value in row.items()} for row in rows]
    return found


def differences(written: dict[str, Shape], shapes: dict[str, Shape]) -> list[str]:
    """Where rows that were written by hand have another form than the broker's, or there are more or fewer of them."""
    return [
        f"{name}: {table} has {ours}, the broker's {theirs}"
        for name, shape_ in shapes.items()
        for table, rows in shape_.items()
        for ours, theirs in _pairs(written[name][table], rows)
        if ours != theirs
    ]


def _pairs(ours: list[dict[str, str]], theirs: list[dict[str, str]]) -> Iterator[tuple[object, object]]:
    yield len(ours), len(theirs)
    for our_row, their_row in zip(ours, theirs, strict=False):
        yield from ((f"{column} {our_row[column]}", f"{column} {their_row[column]}") for column in their_row)


@pytest.fixture
def by_hand(prepared: str) -> Iterator[psycopg.Connection[Any]]:
    """A session in a database in which no broker has written."""
    with databases.copied(prepared) as url, psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def by_broker(broker: RunningBroker) -> Iterator[psycopg.Connection[Any]]:
    """A session in the broker's database."""
    with psycopg.connect(broker.database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def shapes(producer: Producer, wire: Wire, orders: str, by_broker: psycopg.Connection[Any]) -> dict[str, Shape]:
    """What the broker writes of transactions: committed, rolled back, pending, and pending after a check."""
    committed = producer.begin(orders, b"order 1", **FIELDS)
    rolled_back, pending = (producer.begin(orders, b"order 2", check_immunity_seconds=60) for _ in range(2))
    committed.commit()
    rolled_back.rollback()
    asked = producer.begin(orders, b"order 3", check_immunity_seconds=1)
    ids = {"committed": committed, "rolled back": rolled_back, "pending": pending, "asked": asked}
    eventually(lambda: shape(by_broker, rolled_back.transaction_id)["operation"])
    wire.post(f"/v1/producer-groups/{producer.group}/checks/receive", {"wait_seconds": 10})
    return {name: shape(by_broker, transaction.transaction_id) for name, transaction in ids.items()}


def test_rows_of_the_consoles_tests_are_those_of_the_broker(
    shapes: dict[str, Shape], by_hand: psycopg.Connection[Any]
) -> None:
    by_hand.row_factory = namedtuple_row
    console = Broker(by_hand, datetime.now(UTC))
    orders, shop = console.topic("orders"), console.producer_group("shop")

    written = {
        "committed": console.committed(shop, orders, b"order 1", timedelta(seconds=1), **FIELDS),
        "rolled back": console.rolled_back(shop, orders, timedelta(seconds=1)),
        "pending": console.half(shop, orders, b"order 2", timedelta(seconds=1)),
        "asked": console.half(shop, orders, b"order 3", timedelta(seconds=2), check_times=1, last_failure=REASON),
    }
    console.check(written["asked"], timedelta(seconds=1), None, counted=True, latency_ms=0, reason=REASON)

    assert differences({name: shape(by_hand, id_) for name, id_ in written.items()}, shapes) == []


def test_rows_of_the_exports_past_are_those_of_the_broker(
    shapes: dict[str, Shape], by_hand: psycopg.Connection[Any]
) -> None:
    past = Past(by_hand)
    orders, shop = past.topic("orders"), (past.group("shop"), "shop")
    committed = past.begin(1, shop, [orders], **FIELDS)
    rolled_back, pending, asked = (past.begin(1, shop, [orders]) for _ in range(3))
    past.enqueue(1, orders, 0, 0, committed.messages[0])
    past.end(1, committed, "COMMIT", "producer", queue_offsets=[0])
    past.end(1, rolled_back, "ROLLBACK", "producer")
    past.leave(pending)
    past.check(1, asked, latency_ms=0, reason=REASON)
    past.leave(asked, checks=1, last_failure=REASON)

    written = {"committed": committed, "rolled back": rolled_back, "pending": pending, "asked": asked}

    assert differences({name: shape(by_hand, half.transaction_id) for name, half in written.items()}, shapes) == []


def test_rows_of_the_exports_writers_are_those_of_the_broker(
    shapes: dict[str, Shape], by_hand: psycopg.Connection[Any]
) -> None:
    committed, rolled_back, pending = (writers.begin(by_hand) for _ in range(3))
    writers.end(by_hand, committed, "COMMIT")
    writers.end(by_hand, rolled_back, "ROLLBACK")

    ids = {"committed": committed, "rolled back": rolled_back, "pending": pending}
    written = {name: shape(by_hand, transaction_id) for name, transaction_id in ids.items()}

    # The writers give no fields, and ask nothing.
    shapes.pop("asked")
    plain = dict.fromkeys(FIELDS, "None")
    [message] = shapes["committed"]["commit_log"]
    shapes["committed"]["commit_log"] = [message | plain]
    assert differences(written, shapes) == []


def test_the_checker_catches_a_column_that_the_broker_fills(by_hand: psycopg.Connection[Any]) -> None:
    id_ = writers.begin(by_hand)
    before = shape(by_hand, id_)

    by_hand.execute("UPDATE half_message SET last_failure = 'none' WHERE transaction_id = %s", (id_,))

    [difference] = differences({"pending": shape(by_hand, id_)}, {"pending": before})
    assert difference == "pending: half_message has last_failure str, the broker's last_failure None"
