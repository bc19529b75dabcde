"""Promises of the page of one transaction: where it stands, what it holds, and all that happened to it."""

from datetime import timedelta
from uuid import uuid4

from tests.console.operators import Operator, Page
from tests.console.rows import Broker


def history(page: Page) -> str:
    """The words of the history, the latest first."""
    return page.text.partition("History")[2].partition("Message")[0]


def test_a_history_tells_every_check_and_every_end_the_latest_first(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    message = broker.stored(orders, 0, b"order 1", timedelta(minutes=5), transaction_id=uuid4(), producer_group_id=shop)
    broker.said(message, "UNKNOWN", timedelta(minutes=4), remark="still asking the bank")
    first, second = (1, "https://one.example/checks"), (2, "https://two.example/checks")
    broker.check(message.transaction_id, timedelta(minutes=3), first, latency_ms=5001, reason="No answer within 5 s.")
    broker.check(message.transaction_id, timedelta(minutes=2), second, status=200, latency_ms=12, answer="COMMIT")
    broker.said(message, "COMMIT", timedelta(minutes=1), by="check", check_times=2, queue_offset=7)

    page = ada.sees(f"transactions/{message.transaction_id}/")

    assert page.status == 200
    told = history(page)
    places = [
        told.index(words)
        for words in (
            "by check after 2 checks",
            "https://two.example/checks status 200 12 ms",
            "https://one.example/checks 5001 ms No answer within 5 s.",
            "by producer “still asking the bank”",
            "Prepared",
        )
    ]
    assert places == sorted(places)


def test_a_transaction_shows_its_state(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    hour = timedelta(hours=1)
    states = {
        broker.half(shop, orders, b"x", hour): "PREPARED",
        broker.half(shop, orders, b"x", hour, discarded_at=broker.now): "DISCARDED",
        broker.committed(shop, orders, b"x", hour): "COMMITTED",
        broker.rolled_back(shop, orders, hour): "ROLLED_BACK",
    }

    shown = {id: ada.sees(f"transactions/{id}/").text.partition(f"{id} ")[2].split()[0] for id in states}

    assert shown == states


def test_a_committed_message_shows_its_place_and_a_half_message_none(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    broker.committed(shop, orders, b"first", timedelta(minutes=2), queue=3)
    committed = broker.committed(shop, orders, b"second", timedelta(minutes=1), queue=3)
    half = broker.half(shop, orders, b"third", timedelta(seconds=1))

    assert "Queue 3 Queue offset 1 Log offset 1 " in ada.sees(f"transactions/{committed}/").text
    assert "Queue offset none: no consumer can see it" in ada.sees(f"transactions/{half}/").text


def test_a_message_shows_its_properties_tags_and_keys(broker: Broker, ada: Operator) -> None:
    half = broker.half(
        broker.producer_group("shop"),
        broker.topic("orders"),
        b"x",
        timedelta(seconds=1),
        tags="paid",
        keys=["order-1", "customer-2"],
        properties={"region": "eu", "price": "59.90"},
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    )

    text = ada.sees(f"transactions/{half}/").text

    assert "Tags paid Keys order-1, customer-2" in text
    assert "region eu price 59.90" in text
    assert "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" in text


def test_a_body_of_bytes_is_shown_as_bytes_and_only_its_first_kib(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    data = broker.half(shop, orders, b"\x00\xff\x10order" * 1000, timedelta(seconds=1))
    text = broker.half(shop, orders, ("é" * 3000).encode(), timedelta(seconds=1))

    page = ada.sees(f"transactions/{data}/")

    assert "7.8 KB, no text: shown as bytes, the first 1 KiB" in page.text
    assert "0000 00 ff 10 6f 72 64 65 72 00 ff 10 6f 72 64 65 72 ...order...order" in page.text
    assert "03f0 " in page.text
    assert "0400 " not in page.text
    assert f">{'é' * 512}<" in ada.sees(f"transactions/{text}/").html


def test_what_a_message_holds_is_text_and_never_markup(broker: Broker, ada: Operator) -> None:
    evil = "<script>alert(1)</script>"
    half = broker.half(
        broker.producer_group("shop"),
        broker.topic("orders"),
        evil.encode(),
        timedelta(seconds=1),
        tags=evil,
        keys=[evil],
        properties={evil: evil},
        last_failure=evil,
    )

    for path in (
        f"transactions/{half}/",
        "transactions/pending/",
        "transactions/pending/?topic=" + evil.replace("/", "%2F"),
    ):
        assert evil not in ada.sees(path).html


def test_a_transaction_that_is_not_there_is_a_sentence(broker: Broker, ada: Operator) -> None:
    absent = uuid4()

    page = ada.sees(f"transactions/{absent}/")

    assert page.status == 404
    assert f"Transaction {absent} does not exist: ended transactions are kept for 72 hours." in page.text
