"""Promises of the pages of producer groups and consumer groups."""

from datetime import timedelta

from tests.console.operators import Operator
from tests.console.rows import Broker


def test_a_producer_group_shows_what_it_has_pending_and_how_its_endpoints_are(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    broker.producer_group("loyalty")
    broker.endpoint(shop, "https://one.example/checks")
    broker.endpoint(shop, "https://two.example/checks", state="open", failures=7)
    broker.half(shop, orders, b"x", timedelta(hours=2))
    broker.half(shop, orders, b"x", timedelta(seconds=5))
    broker.half(shop, orders, b"x", timedelta(hours=5), discarded_at=broker.now)

    rows = {row[0]: row[1:] for row in ada.sees("producer-groups/").table("producer-groups")}

    assert rows["shop"][0] == "2"
    assert rows["shop"][1].startswith("2 h")
    assert rows["shop"][2:] == ["1 healthy 1 paused after failures", "on"]
    assert rows["loyalty"] == ["0", "–", "none: no check can be sent", "on"]


def test_an_endpoint_shows_its_health_and_never_its_secret(broker: Broker, ada: Operator) -> None:
    shop = broker.producer_group("shop")
    broker.endpoint(
        shop,
        "https://two.example/checks",
        state="open",
        failures=7,
        last_failure="The connection was refused.",
        last_failure_at=broker.now - timedelta(minutes=2),
        failing_since=broker.now - timedelta(minutes=9),
        open_until=broker.now + timedelta(minutes=30),
    )

    page = ada.sees("producer-groups/shop/")

    row, buttons = page.table("endpoints")
    assert row[0] == "https://two.example/checks"
    assert row[1].startswith("paused after 7 failures, next try in ")
    assert row[2] == "7 for 9 min"
    assert row[3].startswith("The connection was refused. 2 min")
    assert row[4] == "never"
    assert buttons == ["Try New secret Change Change the URL Call again Delete"]
    listed = ada.sees("transactions/endpoint/")
    one = ada.follows(listed, "https://two.example/checks")
    assert [shown.status for shown in (page, listed, one)] == [200, 200, 200]
    assert "whsec_" not in page.html + listed.html + one.html


def test_a_consumer_group_shows_its_lag_in_every_queue_it_has_begun_or_not(broker: Broker, ada: Operator) -> None:
    orders, stock = broker.topic("orders", queues=3), broker.topic("stock", queues=1)
    coupons = broker.consumer_group("coupons")
    for queue, entries in ((0, 5), (1, 4), (2, 2)):
        for _ in range(entries):
            broker.visible(broker.stored(orders, queue, b"x", timedelta(minutes=1)))
    broker.visible(broker.stored(stock, 0, b"x", timedelta(minutes=1)))
    broker.progress(coupons, orders, 0, next_offset=5, moves=3)
    broker.progress(coupons, orders, 1, next_offset=1, moves=2)
    broker.progress(coupons, stock, 0, next_offset=1)

    page = ada.sees("consumer-groups/coupons/")

    assert [row[:5] for row in page.table("progress")] == [
        ["orders", "0", "5", "5", "0"],
        ["orders", "1", "1", "4", "3"],
        ["orders", "2", "0", "2", "2"],
        ["stock", "0", "1", "1", "0"],
    ]
    [row] = ada.sees("consumer-groups/").table("consumer-groups")
    assert row[:4] == ["coupons", "orders, stock", "5", "0"]


def test_a_lag_counts_only_what_retention_has_left(broker: Broker, ada: Operator) -> None:
    orders, coupons = broker.topic("orders", queues=1), broker.consumer_group("coupons")
    for _ in range(10):
        broker.visible(broker.stored(orders, 0, b"x", timedelta(minutes=1)))
    broker.progress(coupons, orders, 0, next_offset=2)
    broker.insert("queue_floor", topic_id=orders, queue_id=0, min_offset=7)

    [row] = ada.sees("consumer-groups/coupons/").table("progress")

    assert row[4] == "3"


def test_groups_that_are_not_there_are_a_sentence(broker: Broker, ada: Operator) -> None:
    producers, consumers = ada.sees("producer-groups/nobody/"), ada.sees("consumer-groups/nobody/")

    assert (producers.status, consumers.status) == (404, 404)
    assert "Producer group nobody does not exist." in producers.text
    assert "Consumer group nobody does not exist." in consumers.text


def test_a_group_without_anything_says_what_to_do(broker: Broker, ada: Operator) -> None:
    broker.producer_group("shop")
    broker.consumer_group("coupons")

    assert f"curl -X POST {ada.console}/v1/producer-groups/shop/endpoints" in ada.sees("producer-groups/shop/").text
    assert f"curl -X POST {ada.console}/v1/consumer-groups/coupons/receive" in ada.sees("consumer-groups/coupons/").text


def test_ended_transactions_are_shown_at_their_producer_group_and_at_their_topic(broker: Broker, ada: Operator) -> None:
    orders, mails, shop = broker.topic("orders"), broker.topic("mails"), broker.producer_group("shop")
    for _ in range(3):
        broker.committed(shop, orders, b"x", timedelta(minutes=1))
    broker.rolled_back(shop, mails, timedelta(minutes=1))
    broker.rolled_back(broker.producer_group("kiosk"), orders, timedelta(minutes=1))

    assert ada.sees("producer-groups/shop/").table("ends") == [["orders", "3", "0", "0"], ["mails", "0", "1", "0"]]
    assert ada.sees("topics/orders/").table("ends") == [["shop", "3", "0", "0"], ["kiosk", "0", "1", "0"]]


def test_a_consumer_group_shows_what_waits_for_its_limit_and_why(broker: Broker, ada: Operator) -> None:
    own = {"large": {"in_flight": 5}, "slow": {"per_second": 0.5}}
    limits = {"by": "property:customer", "in_flight": 2, "per_second": 10.0, "burst": 1, "values": own}
    orders, mail = broker.topic("orders", queues=1), broker.consumer_group("mail", limits=limits)
    for offset, value in enumerate(["acme", "acme", "large"]):
        broker.receipt(mail, orders, 0, offset, "flight", None, limit_value=value)
    for number, (value, count) in enumerate([("acme", 3), ("large", 4), ("slow", 2), ("", 1)], 1):
        broker.waiting(mail, orders, value, list(range(10 * number, 10 * number + count)))
    broker.insert("pace", group_id=mail, topic_id=orders, value="slow", due_at=broker.now + timedelta(hours=1))

    page = ada.sees("consumer-groups/mail/")

    assert "2 in flight; 10 a second, 1 at once of each property:customer; 2 values have their own" in page.text
    acme, slow = page.table("at_limit")
    assert acme == ["orders", "acme", "3", "2 in flight of at most 2"]
    assert slow[:3] == ["orders", "slow", "2"]
    assert slow[3].startswith("0.5 a second, the next in 3")
    broker.consumer_group("plain")
    assert "at_limit" not in ada.sees("consumer-groups/plain/").html
