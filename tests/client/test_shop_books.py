"""The shop's books: racing checks and payments agree, a coupon is issued once, the reconciliation sees every lie."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest
from mqbroker_client.ids import uuid7

from examples.shop.coupon_book import CouponBook
from examples.shop.order_book import CardDeclined, OrderAbandoned, OrderBook
from examples.shop.reconciliation import reconcile

PAID = {"1", "2", "3"}
ONCE_EACH = {"1": 1, "2": 1, "3": 1}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_a_paid_order_is_paid_for_good(folder: Path) -> None:
    book, order_id = OrderBook(folder / "orders"), uuid7()

    book.pay(order_id, 100, card_is_good=True)
    book.pay(order_id, 100, card_is_good=True)

    assert book.is_paid_for_good(order_id)
    assert book.paid() == {str(order_id)}


def test_a_declined_card_leaves_nothing(folder: Path) -> None:
    book, order_id = OrderBook(folder / "orders"), uuid7()

    with pytest.raises(CardDeclined):
        book.pay(order_id, 100, card_is_good=False)

    assert book.paid() == set()
    assert not book.is_paid_for_good(order_id)


def test_an_order_that_was_denied_once_is_never_paid(folder: Path) -> None:
    book, order_id = OrderBook(folder / "orders"), uuid7()

    assert not book.is_paid_for_good(order_id)

    with pytest.raises(OrderAbandoned):
        book.pay(order_id, 100, card_is_good=True)
    assert not book.is_paid_for_good(order_id)


def test_a_check_that_races_the_payment_agrees_with_it(folder: Path) -> None:
    order_ids = [uuid7() for _ in range(100)]
    together = threading.Barrier(2)

    def pay_all() -> None:
        book = OrderBook(folder / "orders")
        for order_id in order_ids:
            together.wait(10)
            try:
                book.pay(order_id, 100, card_is_good=True)
            except OrderAbandoned:
                continue

    def check_all() -> set[str]:
        book = OrderBook(folder / "orders")
        committed = set()
        for order_id in order_ids:
            together.wait(10)
            if book.is_paid_for_good(order_id):
                committed.add(str(order_id))
        return committed

    OrderBook(folder / "orders").close()
    with ThreadPoolExecutor(2) as threads:
        paying, checking = threads.submit(pay_all), threads.submit(check_all)
        paying.result()

    assert checking.result() == OrderBook(folder / "orders").paid()


def test_a_second_delivery_is_counted_and_issues_nothing(folder: Path) -> None:
    book = CouponBook(folder / "coupons")

    book.issue(["1", "2"])
    book.issue(["2", "3", "3"])

    assert book.deliveries() == {"1": 1, "2": 2, "3": 2}


def test_books_that_agree_hold() -> None:
    result = reconcile(PAID, ONCE_EACH, decided_by_check_back=2)

    assert result.holds
    assert str(result).splitlines() == [
        "orders paid                 3",
        "coupons issued              3",
        "lost                        0",
        "phantom                     0",
        "twice                       0",
        "decided by check-back       2",
    ]


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
    result = reconcile(paid, deliveries, decided_by_check_back=0)

    assert (result.lost, result.phantom, result.twice) == (lost, phantom, twice)
    assert not result.holds


def test_a_run_without_a_paid_order_proves_nothing() -> None:
    assert not reconcile(set(), {}, decided_by_check_back=0).holds


def test_endpoints_are_remembered_until_they_are_taken_away(folder: Path) -> None:
    OrderBook(folder / "orders").remember_endpoint("5")

    book = OrderBook(folder / "orders")
    assert book.endpoints() == ["5"]
    book.forget_endpoint("5")
    assert book.endpoints() == []


def test_ids_in_the_books_are_the_brokers(folder: Path) -> None:
    book, order_id = OrderBook(folder / "orders"), uuid7()
    book.pay(order_id, 100, card_is_good=True)

    assert {UUID(paid) for paid in book.paid()} == {order_id}
