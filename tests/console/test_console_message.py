"""Promises of the page of one message: what it holds, what happened to it, how each group stands."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from tests.console.operators import Operator
from tests.console.rows import Broker

MINUTE = timedelta(minutes=1)


def test_a_plain_message_shows_its_body_and_its_fields(broker: Broker, ada: Operator) -> None:
    more: dict[str, Any] = {
        "tags": "paid",
        "keys": ["order-4711"],
        "properties": {"region": "eu"},
        "sharding_key": "customer-7",
    }
    message = broker.stored(broker.topic("orders"), 2, b'{"order": 4711}', MINUTE, **more)
    broker.visible(message)

    text = ada.sees(f"messages/{message.message_id}/").text

    assert "VISIBLE Topic orders Queue 2 Queue offset 0" in text
    assert "Tags paid Keys order-4711 Sharding key customer-7" in text
    assert "region eu" in text
    assert '{"order": 4711}' in text


def test_each_group_shows_how_it_stands_and_the_trace_what_happened_the_latest_first(
    broker: Broker, ada: Operator
) -> None:
    orders = broker.topic("orders", queues=1)
    first = broker.stored(orders, 0, b"x", MINUTE)
    broker.visible(first)
    groups = {name: broker.consumer_group(name) for name in ("acked", "behind", "reading")}
    broker.progress(groups["acked"], orders, 0, next_offset=1)
    broker.progress(groups["reading"], orders, 0, next_offset=1)
    broker.receipt(groups["reading"], orders, 0, 0, "flight", None)
    broker.progress(groups["behind"], orders, 0, next_offset=0)

    page = ada.sees(f"messages/{first.message_id}/")

    assert [row[:3] for row in page.table("standings")] == [
        ["acked", "PASSED", "1"],
        ["behind", "WAITING", "1"],
        ["reading", "IN_FLIGHT", "1"],
    ]
    trace = page.text.partition("Trace ")[2]
    assert trace.index("Passed by acked, attempt 1") < trace.index("Visible in orders, queue 0, offset 0")
    assert trace.index("Visible in orders") < trace.index("Stored at log offset")


def test_a_message_that_a_timer_released_shows_when_it_was_due(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders", queues=1)
    plain, delayed = (broker.stored(orders, 0, b"x", MINUTE) for _ in range(2))
    broker.visible(plain)
    broker.visible(delayed, due_at=broker.now - 2 * MINUTE)

    assert "due at" not in ada.sees(f"messages/{plain.message_id}/").text
    due = f"{broker.now - 2 * MINUTE:%Y-%m-%d %H:%M:%S}"
    assert f"offset 1, due at {due}" in " ".join(ada.sees(f"messages/{delayed.message_id}/").text.split())


def test_a_viewer_without_leave_sees_no_body(broker: Broker, vic: Operator) -> None:
    message = broker.stored(broker.topic("orders"), 0, b"order 4711", MINUTE)

    page = vic.sees(f"messages/{message.message_id}/")

    assert "order 4711" not in page.html
    assert "Viewers see no bodies" in page.text


def test_a_half_message_leads_to_its_transaction(broker: Broker, ada: Operator) -> None:
    half = broker.half(broker.producer_group("shop"), broker.topic("orders"), b"order 1", MINUTE)
    transaction = ada.sees(f"transactions/{half}/")
    [id] = [text for text, link in transaction.links.items() if link.startswith("/console/messages/")]

    page = ada.follows(transaction, id)

    assert "PREPARED" in page.text
    assert "Queue offset none: no consumer can see it" in page.text
    assert page.links[str(half)] == f"/console/transactions/{half}/"


def test_only_the_first_16_kib_of_a_long_body_are_shown(broker: Broker, ada: Operator) -> None:
    message = broker.stored(broker.topic("orders"), 0, b"a" * 20_000 + b"z", MINUTE)

    page = ada.sees(f"messages/{message.message_id}/")

    assert "19.5 KB, the first 16 KiB" in page.text
    assert "a" * 16_384 in page.html
    assert "a" * 16_385 not in page.html


def test_a_message_that_is_not_there_is_a_sentence(broker: Broker, ada: Operator) -> None:
    absent = uuid4()

    page = ada.sees(f"messages/{absent}/")

    assert page.status == 404
    assert f"Message {absent} does not exist: messages are kept for 72 hours." in page.text


def test_an_entry_of_a_queue_leads_to_its_message(broker: Broker, ada: Operator) -> None:
    message = broker.stored(broker.topic("orders", queues=1), 0, b"hello", MINUTE)
    broker.visible(message)

    page = ada.follows(ada.sees("topics/orders/"), str(message.message_id))

    assert "hello" in page.text
