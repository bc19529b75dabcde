"""Promises of the page of ended transactions: what was decided, by whom and when, narrowed and page by page."""

from datetime import timedelta

from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_agreement import document

MINUTE = timedelta(minutes=1)


def test_ended_transactions_are_those_of_the_api_the_latest_first(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    broker.half(shop, orders, b"x", MINUTE)
    committed = broker.committed(shop, orders, b"x", 2 * MINUTE, keys=["order-1"])
    rolled_back = broker.rolled_back(shop, orders, MINUTE)

    rows = ada.sees("transactions/ended/").table("ended")

    assert [row[:6] for row in rows] == [
        [str(rolled_back), "–", "orders", "shop", "ROLLED_BACK", "producer"],
        [str(committed), "order-1", "orders", "shop", "COMMITTED", "producer"],
    ]
    assert [row[7] for row in rows] == ["1.000 s", "1.000 s"]
    of_api = [
        one["transaction_id"]
        for state in ("ROLLED_BACK", "COMMITTED")
        for one in document(ada, f"/v1/transactions?state={state}")["results"]
    ]
    assert [row[0] for row in rows] == of_api


def test_ended_transactions_are_narrowed_by_state_group_topic_and_age(broker: Broker, ada: Operator) -> None:
    orders, coupons = broker.topic("orders"), broker.topic("coupons")
    shop, bank = broker.producer_group("shop"), broker.producer_group("bank")
    old = broker.committed(shop, orders, b"x", timedelta(hours=2))
    other_topic = broker.committed(shop, coupons, b"x", MINUTE)
    other_group = broker.committed(bank, orders, b"x", MINUTE)
    rolled_back = broker.rolled_back(shop, orders, MINUTE)

    def listed(query: str) -> list[str]:
        return [row[0] for row in ada.sees(f"transactions/ended/?{query}").table("ended")]

    assert listed("state=rolled_back") == [str(rolled_back)]
    assert listed("topic=coupons") == [str(other_topic)]
    assert listed("producer_group=bank") == [str(other_group)]
    assert listed("older_than_seconds=3600") == [str(old)]
    assert listed("producer_group=nothing") == []


def test_ended_transactions_go_on_page_by_page(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    ids = [str(broker.committed(shop, orders, b"x", MINUTE)) for _ in range(60)]

    page = ada.sees("transactions/ended/?state=committed")
    following = ada.follows(page, "Next page")

    shown = [row[0] for row in page.table("ended") + following.table("ended")]
    assert shown == ids[::-1]
    assert "Next page" not in following.links
