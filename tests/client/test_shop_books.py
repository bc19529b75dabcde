"""The shop's books: a coupon is issued once, and the reconciliation sees every lie."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from mqbroker_client import Broker, Delivery, Producer
from mqbroker_client.core.ids import uuid7

from examples.shop.coupons import CouponBook
from examples.shop.reconciliation import decider, holds, reconcile
from mqbroker.embedded.commands import ROOT
from tests.client.answers import ENTRY, MESSAGE, MOMENT, problem
from tests.client.servers import Answer, scripted

PAID = {"1", "2", "3"}
ONCE_EACH = {"1": 1, "2": 1, "3": 1}
PREPARED = {"event": "prepared", "at": MOMENT}
ASKED = {"event": "check", "at": MOMENT, "answer": "UNKNOWN"}
UNKNOWN = {"event": "end", "at": MOMENT, "state": "UNKNOWN", "by": "producer"}
BY_PRODUCER = {"event": "end", "at": MOMENT, "state": "ROLLBACK", "by": "producer"}
BY_CHECK = {"event": "end", "at": MOMENT, "state": "COMMIT", "by": "check"}


@dataclass(frozen=True)
class Order:
    """The message of an order."""

    order_id: str

    def delivery(self) -> Delivery:
        body = json.dumps({"order_id": self.order_id})
        return Delivery.read(cast(dict[str, Any], ENTRY | {"message": MESSAGE | {"body": body}}))


def test_a_second_delivery_is_counted_and_issues_nothing(tmp_path: Path) -> None:
    book = CouponBook(tmp_path / "coupons")
    book.make()

    for order_id in ("1", "2", "2", "3", "3"):
        book.issue(Order(order_id).delivery())

    assert book.deliveries() == {"1": 1, "2": 2, "3": 2}


def test_books_that_agree_hold() -> None:
    figures = reconcile(PAID, ONCE_EACH, decided_by_check_back=2)

    assert holds(figures)
    assert list(figures.values()) == [3, 3, 0, 0, 0, 2]


@pytest.mark.parametrize(
    ("paid", "deliveries", "lost", "phantom", "twice"),
    [
        (PAID | {"4"}, ONCE_EACH, 1, 0, 0),
        (PAID, ONCE_EACH | {"4": 1}, 0, 1, 0),
        (PAID, ONCE_EACH | {"3": 2}, 0, 0, 1),
        (PAID | {"4"}, ONCE_EACH | {"5": 3}, 1, 1, 1),
    ],
)
def test_books_that_disagree_do_not_hold(
    paid: set[str], deliveries: dict[str, int], lost: int, phantom: int, twice: int
) -> None:
    figures = reconcile(paid, deliveries, decided_by_check_back=0)

    assert (figures["lost"], figures["phantom"], figures["twice"]) == (lost, phantom, twice)
    assert not holds(figures)


def test_a_run_without_a_paid_order_proves_nothing() -> None:
    assert not holds(reconcile(set(), {}, decided_by_check_back=0))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (Answer(200, {"state": "ROLLED_BACK", "history": [PREPARED, ASKED, BY_PRODUCER]}), "producer"),
        (Answer(200, {"state": "COMMITTED", "history": [PREPARED, ASKED, UNKNOWN, BY_CHECK]}), "check"),
        (Answer(200, {"state": "PREPARED", "history": [PREPARED, ASKED]}), None),
        (problem(404, "transaction_not_found", "Never stored."), "none"),
    ],
)
def test_an_order_counts_for_the_side_that_ended_it_and_not_for_the_one_that_was_checked(
    answer: Answer, found: str | None
) -> None:
    with scripted(answer) as server:
        assert decider(Producer(Broker(server.url, "key"), "shop"), uuid7()) == found


def test_the_shop_stays_small_and_has_no_check_of_its_own() -> None:
    files = [file for pattern in ("*.py", "*.md") for file in (ROOT / "examples" / "shop").glob(pattern)]
    lines = [line for file in files for line in file.read_text().splitlines()]

    assert len(lines) <= 500
    assert not any("check_local_transaction" in line for line in lines)
