"""Transactions as they are listed."""

from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.broker import characters
from tests.broker.running import RunningBroker
from tests.broker.wire import Document
from tests.control.operators import Operator, illegal

BUSY_GROUP = """
INSERT INTO operation (
    segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by, decided_at, check_times,
    stored_at, log_segment, log_offset, message_id, topic_id, queue_id
)
SELECT 1, nextval('operation_id'), gen_random_uuid(), -7, 'COMMIT', 'producer', now(), 0, now(), 1, 0,
    gen_random_uuid(), -7, 0
FROM generate_series(1, %s)
"""


def begin(operator: Operator, group: str, topic: str, **more: Any) -> str:
    """Begins a transaction; its id."""
    begun = operator.make("/v1/transactions", producer_group=group, topic=topic, body="order", **more)
    assert begun.status == 201, begun
    return str(begun.document["transaction_id"])


def end(operator: Operator, group: str, transaction_id: str, state: str) -> None:
    """Ends a transaction."""
    assert operator.make(f"/v1/transactions/{transaction_id}/end", producer_group=group, state=state).status == 200


def ids(transactions: list[Document]) -> list[str]:
    """Which transactions these are, in their order."""
    return [transaction["transaction_id"] for transaction in transactions]


@pytest.fixture
def five(operator: Operator, shop: str, orders: str) -> list[str]:
    """Five transactions: two undecided, then a committed, a rolled back and a committed one."""
    begun = [begin(operator, shop, orders) for _ in range(5)]
    for transaction_id, state in zip(begun[2:], ("COMMIT", "ROLLBACK", "COMMIT"), strict=True):
        end(operator, shop, transaction_id, state)
    return begun


def test_the_undecided_come_first_then_the_latest_decisions(operator: Operator, shop: str, five: list[str]) -> None:
    listed = operator.walks(f"/v1/transactions?producer_group={shop}")

    assert ids(listed) == [five[1], five[0], five[4], five[3], five[2]]
    assert [one["state"] for one in listed] == ["PREPARED", "PREPARED", "COMMITTED", "ROLLED_BACK", "COMMITTED"]


@pytest.mark.parametrize(
    ("state", "places"), [("PREPARED", [1, 0]), ("COMMITTED", [4, 2]), ("ROLLED_BACK", [3]), ("DISCARDED", [])]
)
def test_transactions_are_listed_by_state(
    operator: Operator, shop: str, five: list[str], state: str, places: list[int]
) -> None:
    listed = operator.walks(f"/v1/transactions?producer_group={shop}&state={state}", limit=1)

    assert ids(listed) == [five[place] for place in places]


def test_a_transaction_is_told_as_its_own_page_tells_it(operator: Operator, shop: str, five: list[str]) -> None:
    listed = operator.reads(f"/v1/transactions?producer_group={shop}")["results"]

    for summary in listed:
        history = operator.reads(f"/v1/transactions/{summary['transaction_id']}")
        assert summary["stored_at"] == history["history"][0]["at"]
        assert {name: history[name] for name in history if name in summary} == {
            name: summary[name] for name in summary if name in history
        }
    decided = listed[2]
    assert decided["decided_by"] == "producer"
    assert decided["decided_at"] > decided["stored_at"]


def test_transactions_are_listed_by_topic(operator: Operator, shop: str, orders: str, coupons: str) -> None:
    both = operator.make(
        "/v1/transactions",
        producer_group=shop,
        messages=[{"topic": orders, "body": "order"}, {"topic": coupons, "body": "coupon"}],
    ).document["transaction_id"]
    one = begin(operator, shop, orders)
    end(operator, shop, one, "COMMIT")

    assert ids(operator.walks(f"/v1/transactions?topic={orders}")) == [both, one]
    assert ids(operator.walks(f"/v1/transactions?topic={coupons}")) == [both]


def test_transactions_are_listed_by_age(operator: Operator, shop: str, five: list[str]) -> None:
    assert operator.walks(f"/v1/transactions?producer_group={shop}&older_than_seconds=600") == []
    assert len(operator.walks(f"/v1/transactions?producer_group={shop}&older_than_seconds=0")) == 5


def test_a_name_that_nothing_bears_matches_nothing(operator: Operator) -> None:
    assert operator.walks(f"/v1/transactions?producer_group={uuid4()}") == []
    assert operator.walks(f"/v1/transactions?topic={uuid4()}&state=COMMITTED") == []


def test_a_filter_looks_at_a_bounded_number_of_decisions_at_a_time(
    broker: RunningBroker, operator: Operator, shop: str, orders: str
) -> None:
    mine = begin(operator, shop, orders)
    end(operator, shop, mine, "COMMIT")
    with psycopg.connect(broker.database_url) as connection:
        connection.execute(BUSY_GROUP, [10_000])

    first = operator.reads(f"/v1/transactions?producer_group={shop}&state=COMMITTED")

    assert first["results"] == []
    assert first["next"] is not None
    assert ids(operator.walks(f"/v1/transactions?producer_group={shop}&state=COMMITTED")) == [mine]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("state=DONE", "state: it is none of PREPARED, DISCARDED, COMMITTED, ROLLED_BACK."),
        ("older_than_seconds=-1", "older_than_seconds: it is below 0."),
        ("limit=501", "limit: it is above 500."),
        (
            "group=shop",
            "There is no field group here: the fields are limit, cursor, state, producer_group, topic, "
            "older_than_seconds.",
        ),
        (
            "cursor=xyz",
            "cursor 'xyz' does not belong to this list: give the value of `next` in the list's previous page.",
        ),
        (
            "cursor=Im9yZGVycyI",
            "cursor 'Im9yZGVycyI' does not belong to this list: give the value of `next` in the list's previous page.",
        ),
    ],
)
def test_a_bad_query_is_named_with_what_is_wrong(operator: Operator, query: str, sentence: str) -> None:
    assert illegal(operator.get(f"/v1/transactions?{query}")) == sentence


@pytest.mark.parametrize("time", ["yesterday", "2026-01-01", "2026-01-01T00:00:00", "0001-01-01T00:00:00%2B14:00"])
def test_discarded_transactions_are_asked_for_by_whole_times(operator: Operator, time: str) -> None:
    sentence = "from: it is no RFC 3339 time with an offset, such as 2026-01-01T00:00:00Z."

    assert illegal(operator.get(f"/v1/discarded?from={time}")) == sentence
    assert operator.reads("/v1/discarded?from=2026-01-01T00:00:00Z&to=2026-01-01T02:00:00%2B02:00")["results"] == []


def test_who_may_not_manage_sees_no_list(operator: Operator) -> None:
    name = characters.name("producer")
    key = operator.make("/v1/api-keys", name=name, scopes=["produce:*"]).document["key"]

    assert Operator(operator.url, key).get("/v1/transactions").problem["code"] == "no_permission"
