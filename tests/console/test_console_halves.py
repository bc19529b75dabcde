"""Promises of the lists of half messages: what waits for a decision, and what was given up."""

from datetime import timedelta

from tests.console.operators import Operator, Page
from tests.console.rows import Broker

PENDING = "transactions/pending/"


def transactions(page: Page, table: str = "pending") -> list[str]:
    """The transaction ids of a list, in its order."""
    return [row[0] for row in page.table(table)]


def test_a_pending_half_message_shows_how_it_stands(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    broker.endpoint(shop, "https://shop.example/checks")
    half = broker.half(
        shop,
        orders,
        b"order 1",
        age=timedelta(minutes=3),
        check_times=5,
        next_check_at=broker.now + timedelta(minutes=10),
        last_failure="The endpoint answered 503.",
    )

    [row] = ada.sees(PENDING).table("pending")

    assert row[:4] == [str(half), "–", "orders", "shop"]
    assert row[4].startswith("3 min")
    assert row[5] == "5 of 15"
    assert row[6].startswith(("in 9 min", "in 10 min"))
    assert row[7] == "The endpoint answered 503."


def test_the_longest_due_comes_first_whatever_its_group(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders")
    groups = [broker.producer_group(name) for name in ("shop", "loyalty", "stock")]
    due = [30, -5, 10, -60, 0, 20]
    halves = {
        seconds: broker.half(
            groups[place % 3], orders, b"x", timedelta(minutes=2), next_check_at=broker.now + timedelta(seconds=seconds)
        )
        for place, seconds in enumerate(due)
    }

    assert transactions(ada.sees(PENDING)) == [str(halves[seconds]) for seconds in sorted(due)]


def test_a_list_narrows_to_a_group_a_topic_and_an_age(broker: Broker, ada: Operator) -> None:
    orders, stock = broker.topic("orders"), broker.topic("stock")
    shop, loyalty = broker.producer_group("shop"), broker.producer_group("loyalty")
    old = broker.half(shop, orders, b"old", timedelta(hours=2))
    young = broker.half(shop, stock, b"young", timedelta(seconds=5))
    other = broker.half(loyalty, orders, b"other", timedelta(minutes=2))

    assert set(transactions(ada.sees(f"{PENDING}?producer_group=shop"))) == {str(old), str(young)}
    assert set(transactions(ada.sees(f"{PENDING}?topic=orders"))) == {str(old), str(other)}
    assert transactions(ada.sees(f"{PENDING}?older_than_seconds=3600")) == [str(old)]
    assert transactions(ada.sees(f"{PENDING}?producer_group=shop&topic=stock")) == [str(young)]


def test_the_list_of_the_discarded_narrows_to_a_group_a_topic_and_an_age(broker: Broker, ada: Operator) -> None:
    orders, stock = broker.topic("orders"), broker.topic("stock")
    shop, loyalty = broker.producer_group("shop"), broker.producer_group("loyalty")
    old, young, other = (
        broker.half(group, topic, b"x", age, discarded_at=broker.now)
        for group, topic, age in (
            (shop, orders, timedelta(hours=2)),
            (shop, stock, timedelta(minutes=1)),
            (loyalty, orders, timedelta(minutes=2)),
        )
    )

    shown = {
        query: set(transactions(ada.sees(f"transactions/discarded/?{query}"), "discarded"))
        for query in ("producer_group=shop", "topic=orders", "older_than_seconds=3600")
    }

    assert shown == {
        "producer_group=shop": {str(old), str(young)},
        "topic=orders": {str(old), str(other)},
        "older_than_seconds=3600": {str(old)},
    }


def test_a_filter_that_matches_nothing_says_so_and_leads_back(broker: Broker, ada: Operator) -> None:
    half = broker.half(broker.producer_group("shop"), broker.topic("orders"), b"x", timedelta(seconds=1))

    for query in ("?producer_group=nobody", "?topic=nothing", "?older_than_seconds=86400"):
        page = ada.sees(PENDING + query)

        assert "No pending half message matches" in page.text
        assert transactions(ada.follows(page, "Show all pending half messages")) == [str(half)]


def test_pages_hold_fifty_and_lead_through_all_each_once(broker: Broker, ada: Operator) -> None:
    orders, groups = broker.topic("orders"), [broker.producer_group("shop"), broker.producer_group("loyalty")]
    # Many are due at the same moment, as they are after an outage.
    halves = {str(broker.half(groups[place % 2], orders, b"x", timedelta(seconds=place // 40))) for place in range(120)}

    page = ada.sees(PENDING)
    seen = [transactions(page)]
    while "Next page" in page.links:
        page = ada.follows(page, "Next page")
        seen.append(transactions(page))

    assert [len(part) for part in seen] == [50, 50, 20]
    assert sorted(id for part in seen for id in part) == sorted(halves)
    assert transactions(ada.follows(page, "First page")) == seen[0]


def test_an_address_that_makes_no_sense_shows_the_first_page(broker: Broker, ada: Operator) -> None:
    half = broker.half(broker.producer_group("shop"), broker.topic("orders"), b"x", timedelta(seconds=1))

    for query in (
        "?after=yesterday",
        "?after=2026-01-01_x",
        "?older_than_seconds=-1",
        "?older_than_seconds=" + "9" * 30,
    ):
        assert transactions(ada.sees(PENDING + query)) == [str(half)]


def test_a_count_beyond_a_hundred_thousand_says_that_there_are_more(broker: Broker, ada: Operator) -> None:
    broker.many_halves(broker.producer_group("shop"), broker.topic("orders"), 100_001)

    page = ada.sees(PENDING)

    assert "50 of 100,000+ pending half messages" in page.text
    assert ada.sees("").figure("pending-halves") == "100,000+"


def test_a_half_message_whose_group_cannot_be_asked_says_why(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders")
    for name, states in {"deaf": [], "broken": ["open", "disabled"], "well": ["open", "healthy"]}.items():
        group = broker.producer_group(name)
        for state in states:
            broker.endpoint(group, f"https://{name}.example/{state}", state=state)
        broker.half(group, orders, b"x", timedelta(minutes=1))

    why = {row[3]: row[7] for row in ada.sees(PENDING + "?all=1").table("pending")}

    assert why == {
        "deaf": "no endpoint is registered, and no producer polls",
        "broken": "no endpoint can be asked: all are disabled or open",
        "well": "–",
    }


def test_a_group_whose_checks_are_paused_shows_no_next_check(broker: Broker, ada: Operator) -> None:
    broker.half(broker.producer_group("shop", checks_paused=True), broker.topic("orders"), b"x", timedelta(minutes=1))

    [row] = ada.sees(PENDING).table("pending")

    assert row[6] == "paused"


def test_a_discarded_half_message_is_listed_with_its_reason_and_waits_no_longer(broker: Broker, ada: Operator) -> None:
    half = broker.half(
        broker.producer_group("shop"),
        broker.topic("orders"),
        b"x",
        age=timedelta(hours=3),
        check_times=15,
        discarded_at=broker.now - timedelta(hours=2),
        last_failure="The endpoint answered 404.",
    )

    [row] = ada.sees("transactions/discarded/").table("discarded")

    assert row[:4] == [str(half), "–", "orders", "shop"]
    assert row[4].startswith("2 h")
    assert row[4].endswith("ago")
    assert row[6:] == ["15 of 15", "The endpoint answered 404."]
    assert ada.sees(PENDING).table("pending") == []


def test_discarded_half_messages_go_on_page_by_page_the_latest_first(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    halves = [
        str(broker.half(shop, orders, b"x", timedelta(hours=1), discarded_at=broker.now - timedelta(seconds=place)))
        for place in range(60)
    ]

    page = ada.sees("transactions/discarded/")

    assert transactions(page, "discarded") == halves[:50]
    assert transactions(ada.follows(page, "Next page"), "discarded") == halves[50:]


def test_an_empty_list_says_how_to_send_the_first_half_message(broker: Broker, ada: Operator) -> None:
    page = ada.sees(PENDING)

    assert "No transaction waits for its decision" in page.text
    assert f"curl -X POST {ada.console}/v1/transactions" in page.text
    assert "No half message was discarded" in ada.sees("transactions/discarded/").text


def test_the_sums_are_narrowed_to_a_namespace_as_the_lists_are(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders")
    for name in ("team%shop", "shop"):
        group = broker.producer_group(name)
        broker.half(group, orders, b"x", timedelta(minutes=1))
        broker.half(group, orders, b"x", timedelta(hours=4), discarded_at=broker.now)

    narrowed, whole = ada.sees(f"{PENDING}?namespace=team"), ada.sees(PENDING)
    discarded = ada.sees("transactions/discarded/?namespace=team")

    assert [row[0] for row in narrowed.table("groups")] == ["team%shop"]
    assert sorted(row[0] for row in whole.table("groups")) == ["shop", "team%shop"]
    assert [row[1] for row in discarded.table("by-reason")] == ["team%shop"]
