"""Repeats that come while the first request is being committed: they are answered as it was."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from tests.broker import characters
from tests.broker.in_between import committed_in_between
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire

TABLES = ("half_message", "commit_log")


@pytest.fixture
def other(broker: RunningBroker) -> Iterator[psycopg.Connection]:
    """A session that stands for another web process."""
    with psycopg.connect(broker.direct_url, autocommit=True) as session:
        yield session


@pytest.fixture
def caller() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as caller:
        yield caller


@contextmanager
def being_begun(other: psycopg.Connection, transaction_id: str) -> Iterator[None]:
    """Has the commit of a transaction that was begun come once more, when a writer looks for it. Until then it was
    never begun."""
    for table in TABLES:
        other.execute(f"CREATE TEMP TABLE kept_{table} AS TABLE {table} WITH NO DATA".encode())
        moved = f"WITH gone AS (DELETE FROM {table} WHERE transaction_id = %s RETURNING *) "
        other.execute(f"{moved} INSERT INTO kept_{table} SELECT * FROM gone".encode(), [transaction_id])
    with committed_in_between(other):
        for table in TABLES:
            other.execute(f"INSERT INTO {table} SELECT * FROM kept_{table}".encode())
        yield


@pytest.fixture(params=[1, 2])
def half(request: pytest.FixtureRequest, wire: Wire, orders: str) -> Document:
    """A transaction, of one message or of two: these are written stepwise."""
    order = {"topic": orders, "body": "order"}
    content = order if request.param == 1 else {"messages": [order] * request.param}
    return {**content, "producer_group": characters.name("shop"), "transaction_id": str(uuid.uuid4())}


def test_a_begin_that_meets_the_commit_of_the_same_one_is_answered_as_it_was(
    wire: Wire, other: psycopg.Connection, caller: ThreadPoolExecutor, half: Document
) -> None:
    first = wire.post("/v1/transactions", half)

    with being_begun(other, half["transaction_id"]):
        repeat = caller.submit(wire.post, "/v1/transactions", half)

    assert (repeat.result().status, repeat.result().document) == (200, {**first.document, "duplicate": True})


# What names a group or a topic by its id.
NAMED_BY = {
    "producer_group": (
        "UPDATE half_message SET producer_group_id = %(id)s WHERE transaction_id = %(transaction_id)s",
        "UPDATE commit_log SET producer_group_id = %(id)s WHERE transaction_id = %(transaction_id)s",
    ),
    "topic": (
        "UPDATE half_message SET topic_id = %(id)s WHERE transaction_id = %(transaction_id)s AND topic_id IS NOT NULL",
        "UPDATE half_message SET topic_ids = array_fill(%(id)s::integer, ARRAY[cardinality(topic_ids)]) "
        "WHERE transaction_id = %(transaction_id)s AND topic_ids IS NOT NULL",
        "UPDATE commit_log SET topic_id = %(id)s WHERE transaction_id = %(transaction_id)s",
    ),
}


@pytest.mark.parametrize("remade", NAMED_BY)
def test_a_begin_that_meets_the_same_one_in_a_group_or_topic_that_was_made_again_is_answered_as_it_was(
    wire: Wire,
    other: psycopg.Connection,
    caller: ThreadPoolExecutor,
    half: Document,
    orders: str,
    remade: str,
) -> None:
    """The repeat has looked its group and its topic up before."""
    first = wire.post("/v1/transactions", half)

    with being_begun(other, half["transaction_id"]):
        make_again(other, remade, orders if remade == "topic" else half["producer_group"], half["transaction_id"])
        repeat = caller.submit(wire.post, "/v1/transactions", half)

    assert (repeat.result().status, repeat.result().document) == (200, {**first.document, "duplicate": True})


def make_again(other: psycopg.Connection, table: str, name: str, transaction_id: str) -> None:
    """Gives a group or a topic the id that it would have if it were deleted and made again, and was so when the
    transaction was begun."""
    made = f"UPDATE {table} SET id = nextval(pg_get_serial_sequence('{table}', 'id')) WHERE name = %s RETURNING id"
    found = other.execute(made.encode(), [name]).fetchone()
    assert found is not None
    for naming in NAMED_BY[table]:
        other.execute(naming.encode(), {"id": found[0], "transaction_id": transaction_id})
