"""Promises of the search box: an id, a key or words lead to the page, and what is not understood says what would be."""

from datetime import timedelta
from html import unescape
from urllib.parse import quote
from uuid import uuid4

from tests.console.operators import Operator, Page
from tests.console.rows import Broker

MINUTE = timedelta(minutes=1)


def search(operator: Operator, typed: str) -> Page:
    """What the search box leads to."""
    return operator.sees(f"find/?q={quote(typed)}")


def suggestions(operator: Operator, typed: str) -> list[str]:
    """What the search box offers while this is typed."""
    html = operator.sees(f"find/suggestions/?q={quote(typed)}").html
    return [unescape(part.partition('"')[0]) for part in html.split('<option value="')[1:]]


def test_an_id_leads_to_its_transaction_or_its_message(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders")
    half = broker.half(broker.producer_group("shop"), orders, b"x", MINUTE)
    message = broker.stored(orders, 0, b"x", MINUTE)

    assert search(ada, f" {str(half).upper()} ").address.endswith(f"/transactions/{half}/")
    assert search(ada, str(message.message_id)).address.endswith(f"/messages/{message.message_id}/")


def test_an_id_of_a_transaction_and_of_a_message_is_a_choice(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders")
    message = broker.stored(orders, 0, b"x", MINUTE)
    broker.half(broker.producer_group("shop"), orders, b"x", MINUTE, transaction_id=message.message_id)

    rows = search(ada, str(message.message_id)).table("names")

    assert [row[0] for row in rows] == ["Transaction", "Message"]


def test_a_key_finds_its_messages_in_all_topics_with_the_state_of_their_transactions(
    broker: Broker, ada: Operator
) -> None:
    orders, coupons, shop = broker.topic("orders"), broker.topic("coupons"), broker.producer_group("shop")
    broker.stored(orders, 0, b"x", MINUTE, keys=["order-47"])
    broker.visible(broker.stored(coupons, 0, b"x", MINUTE, keys=["coupon-1", "order-4711"], tags="paid"))
    half = broker.half(shop, orders, b"x", MINUTE, keys=["order-4711"])

    page = search(ada, "order-4711")

    assert "“order-4711” in all topics, the latest first" in page.text
    assert [row[1:5] for row in page.table("messages")] == [
        ["orders", "PREPARED", "order-4711", "–"],
        ["coupons", "–", "coupon-1, order-4711", "paid"],
    ]
    assert page.links["PREPARED"] == f"/console/transactions/{half}/"
    in_one = search(ada, "key:order-4711 topic:coupons")
    assert [row[1] for row in in_one.table("messages")] == ["coupons"]


def test_a_message_that_was_stored_again_is_found_once(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders")
    first = broker.stored(orders, 0, b"x", MINUTE, keys=["order-1"])
    broker.connection.execute("CREATE TABLE stored_again PARTITION OF commit_log FOR VALUES IN (99)")
    try:
        broker.stored(orders, 0, b"x", MINUTE, keys=["order-1"], message_id=first.message_id, segment_id=99)

        assert len(search(ada, "order-1").table("messages")) == 1
    finally:
        broker.connection.execute("DROP TABLE stored_again")


def test_words_lead_to_the_list_they_narrow(broker: Broker, ada: Operator) -> None:
    orders, shop, bank = broker.topic("orders"), broker.producer_group("shop"), broker.producer_group("bank")
    old = broker.half(shop, orders, b"x", timedelta(hours=1))
    broker.half(shop, orders, b"x", MINUTE)
    broker.half(bank, orders, b"x", timedelta(hours=1))
    committed = broker.committed(shop, orders, b"x", MINUTE)
    broker.rolled_back(shop, orders, MINUTE)

    pending = search(ada, "group:shop state:pending older:10m")
    ended = search(ada, "state:committed topic:orders")

    assert [row[0] for row in pending.table("pending")] == [str(old)]
    assert [row[0] for row in ended.table("ended")] == [str(committed)]


def test_a_name_leads_to_its_page_and_a_part_of_it_to_a_choice(broker: Broker, ada: Operator) -> None:
    broker.topic("orders")
    broker.topic("orders-eu")
    broker.producer_group("shop")
    broker.consumer_group("shop")

    assert search(ada, "topic:orders").address.endswith("/topics/orders/")
    assert [row[1] for row in search(ada, "topic:RDERS").table("names")] == ["orders", "orders-eu"]
    assert [row[0] for row in search(ada, "group:shop").table("names")] == ["Producer group", "Consumer group"]
    assert ["Topic", "orders-eu"] in search(ada, "orders").table("names")


def test_a_namespace_narrows_names_keys_and_lists(broker: Broker, ada: Operator) -> None:
    broker.connection.execute("INSERT INTO namespace (name) VALUES ('team')")
    orders, theirs = broker.topic("orders"), broker.topic("team%orders")
    shop, of_team = broker.producer_group("shop"), broker.producer_group("team%shop")
    broker.half(shop, orders, b"x", MINUTE, keys=["order-7"])
    half = broker.half(of_team, theirs, b"x", 2 * MINUTE, keys=["order-7"])
    for _ in range(60):
        broker.stored(orders, 0, b"x", MINUTE, keys=["order-7"])

    assert [row[1] for row in search(ada, "namespace:team").table("names")] == ["team%orders", "team%shop"]
    assert search(ada, "namespace:team topic:orders").address.endswith("/topics/team%25orders/")
    assert [row[1] for row in search(ada, "namespace:team order-7").table("messages")] == ["team%orders"]
    in_one = search(ada, "namespace:team key:order-7 topic:orders")
    assert [row[1] for row in in_one.table("messages")] == ["team%orders"]
    assert [row[0] for row in search(ada, "namespace:team state:pending").table("pending")] == [str(half)]
    assert "Nothing is in the namespace empty" in search(ada, "namespace:empty").text
    assert suggestions(ada, "namespace:te") == ["namespace:team"]


def test_what_is_not_understood_says_what_would_be(broker: Broker, ada: Operator) -> None:
    said = {
        "colour:red": "“colour:” is no word of the search.",
        "state:lost": "state “lost” is none: write pending, discarded, committed or rolled_back.",
        "older:soon": "older “soon” is no age: write 30s, 10m, 2h or 1d.",
        "topic:": "“topic:” needs a value right behind the colon.",
        "order 4711": "“order” and “4711”: give one id or one key, the rest as words.",
        "key:x topic:nothing": "There is no topic “nothing”.",
    }

    for typed, sentence in said.items():
        page = search(ada, typed)
        assert sentence in page.text
        assert "What the search understands" in page.text
    absent = uuid4()
    assert f"No transaction and no message has the id {absent}" in search(ada, str(absent)).text
    assert "No message has the key “order-9”" in search(ada, "order-9").text


def test_the_box_is_on_every_page_and_offers_completions(broker: Broker, ada: Operator) -> None:
    broker.topic("orders")
    broker.producer_group("shop")
    broker.consumer_group("shopkeepers")

    for path in ("", "topics/", "store/segment/", "find/"):
        assert 'id="mq-search"' in ada.sees(path).html
    assert suggestions(ada, "st") == ["state:"]
    assert suggestions(ada, "state:dis") == ["state:discarded"]
    assert suggestions(ada, "older:10m topic:ord") == ["older:10m topic:orders"]
    assert suggestions(ada, "group:sho") == ["group:shop", "group:shopkeepers"]
