"""Calls that meet a discard or a resume between two of their statements: they are answered by the state after it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from mqbroker_client import Producer

from tests.broker.in_between import committed_in_between
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire

RESUMED = (
    "UPDATE half_message SET discarded_at = NULL, next_check_at = now() + interval '1 day' WHERE transaction_id = %s"
)
DISCARDED = "UPDATE half_message SET discarded_at = now(), line = 0 WHERE transaction_id = %s"


@pytest.fixture
def transaction_id(producer: Producer, orders: str) -> str:
    """A transaction that was begun."""
    return str(producer.begin(orders, b"order 1").transaction_id)


@pytest.fixture
def other(broker: RunningBroker, transaction_id: str, orders: str) -> Iterator[psycopg.Connection]:
    """A session in the transaction's database, which stands for another process."""
    with psycopg.connect(broker.database_of(orders), autocommit=True) as session:
        yield session


@pytest.fixture
def caller() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as caller:
        yield caller


def test_an_end_that_meets_the_resume_of_its_transaction_decides_it(
    wire: Wire,
    producer: Producer,
    other: psycopg.Connection,
    caller: ThreadPoolExecutor,
    transaction_id: str,
) -> None:
    other.execute(DISCARDED, [transaction_id])
    end = {"producer_group": producer.group, "state": "COMMIT"}

    with committed_in_between(other):
        other.execute(RESUMED, [transaction_id])
        ended = caller.submit(wire.post, f"/v1/transactions/{transaction_id}/end", end)

    assert (ended.result().status, ended.result().document["state"]) == (200, "COMMITTED")


def test_a_check_that_meets_the_resume_of_its_transaction_is_due(
    wire: Wire, other: psycopg.Connection, caller: ThreadPoolExecutor, transaction_id: str
) -> None:
    other.execute(DISCARDED, [transaction_id])

    with committed_in_between(other):
        other.execute(RESUMED, [transaction_id])
        checked = caller.submit(wire.post, f"/v1/transactions/{transaction_id}/check", {})

    assert (checked.result().status, checked.result().document["state"]) == (202, "PREPARED")


def test_a_resume_that_meets_the_discard_of_its_transaction_resumes_it(
    wire: Wire, other: psycopg.Connection, caller: ThreadPoolExecutor, transaction_id: str
) -> None:
    with committed_in_between(other):
        other.execute(DISCARDED, [transaction_id])
        resumed = caller.submit(wire.post, f"/v1/discarded/{transaction_id}/resume", {})

    assert (resumed.result().status, resumed.result().document["state"]) == (200, "PREPARED")


def test_an_operators_decision_that_meets_the_discard_of_its_transaction_decides_it(
    wire: Wire, other: psycopg.Connection, caller: ThreadPoolExecutor, transaction_id: str
) -> None:
    decision = {"state": "ROLLBACK", "reason": "the order is void"}

    with committed_in_between(other):
        other.execute(DISCARDED, [transaction_id])
        resolved = caller.submit(wire.post, f"/v1/discarded/{transaction_id}/resolve", decision)

    assert (resolved.result().status, resolved.result().document["state"]) == (200, "ROLLED_BACK")
