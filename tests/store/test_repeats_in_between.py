"""Repeats that come while the first request is being committed: they are answered as it was."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire

TABLES = ("half_message", "commit_log")
WAITING = (
    "SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) "
    "WHERE l.relation = 'half_message'::regclass AND NOT l.granted AND a.application_name = 'mqbroker-writer'"
)


@pytest.fixture
def other(broker: RunningBroker) -> Iterator[psycopg.Connection]:
    """A session that stands for another web process."""
    with psycopg.connect(broker.database_url, autocommit=True) as session:
        yield session


@pytest.fixture
def caller() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as caller:
        yield caller


@contextmanager
def being_begun(other: psycopg.Connection, broker: RunningBroker, transaction_id: str) -> Iterator[None]:
    """Has the commit of a transaction that was begun come once more, when a writer waits for the table of the half
    messages. Until then it was never begun."""
    for table in TABLES:
        other.execute(f"CREATE TEMP TABLE kept_{table} AS TABLE {table} WITH NO DATA".encode())
        moved = f"WITH gone AS (DELETE FROM {table} WHERE transaction_id = %s RETURNING *) "
        other.execute(f"{moved} INSERT INTO kept_{table} SELECT * FROM gone".encode(), [transaction_id])
    with psycopg.connect(broker.database_url, autocommit=True) as watch, other.transaction():
        other.execute("LOCK TABLE half_message IN ACCESS EXCLUSIVE MODE")
        for table in TABLES:
            other.execute(f"INSERT INTO {table} SELECT * FROM kept_{table}".encode())
        yield
        eventually(lambda: watch.execute(WAITING).fetchall() != [(0,)])


@pytest.fixture(params=[1, 2])
def half(request: pytest.FixtureRequest, wire: Wire, orders: str) -> Document:
    """A transaction, of one message or of two: these are written stepwise."""
    order = {"topic": orders, "body": "order"}
    content = order if request.param == 1 else {"messages": [order] * request.param}
    return {**content, "producer_group": characters.name("shop"), "transaction_id": str(uuid.uuid4())}


def test_a_begin_that_meets_the_commit_of_the_same_one_is_answered_as_it_was(
    broker: RunningBroker, wire: Wire, other: psycopg.Connection, caller: ThreadPoolExecutor, half: Document
) -> None:
    first = wire.post("/v1/transactions", half)

    with being_begun(other, broker, half["transaction_id"]):
        repeat = caller.submit(wire.post, "/v1/transactions", half)

    assert (repeat.result().status, repeat.result().document) == (200, {**first.document, "duplicate": True})
