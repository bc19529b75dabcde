"""Promises of the overview: its figures agree with what is there."""

import html
import json
import re
from datetime import timedelta

from tests.console import given_up
from tests.console.operators import Operator, Page
from tests.console.rows import Broker


def test_the_figures_agree_with_what_is_there(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    half = broker.half(shop, orders, b"x", timedelta(minutes=7))
    broker.check(half, timedelta(minutes=61), None, counted=True)
    broker.check(half, timedelta(minutes=1), None, counted=True)
    broker.half(shop, orders, b"x", timedelta(minutes=2))
    broker.half(shop, orders, b"x", timedelta(hours=4), discarded_at=broker.now)
    for minutes in (300, 61, 59, 30):
        broker.committed(shop, orders, b"x", timedelta(minutes=minutes))
    broker.rolled_back(shop, orders, timedelta(minutes=3))
    broker.committed(shop, orders, b"x", timedelta(minutes=1))

    page = ada.sees("")

    shown = {name: page.figure(name) for name in ("pending-halves", "discarded-halves", "committed", "rolled-back")}
    assert shown == {"pending-halves": "2", "discarded-halves": "1", "committed": "3", "rolled-back": "1"}
    assert page.figure("stored") == "9"
    assert "9 ever" in page.text
    assert "the oldest for 7 min" in page.text
    assert "Checks of the last hour by outcome handed out 1" in page.text


def test_the_chart_has_each_end_in_its_minute(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    ends = [timedelta(minutes=minutes) for minutes in (25, 10, 10)]
    broker.rolled_back(shop, orders, ends[0])
    for ago in ends:
        broker.committed(shop, orders, b"x", ago)

    found = re.search(r'data-value="([^"]+)"', ada.sees("").html)

    assert found is not None
    chart = json.loads(html.unescape(found[1]))
    committed, rolled_back = (dict(zip(chart["labels"], of["data"], strict=True)) for of in chart["datasets"])
    at = [(broker.now - ago).strftime("%H:%M") for ago in ends]
    assert {minute: number for minute, number in committed.items() if number} == {at[0]: 1, at[1]: 2}
    assert {minute: number for minute, number in rolled_back.items() if number} == {at[0]: 1}


def test_consumer_groups_are_shown_the_furthest_behind_first(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders", queues=1)
    for _ in range(4):
        broker.visible(broker.stored(orders, 0, b"x", timedelta(minutes=1)))
    for name, next_offset in (("coupons", 4), ("stock", 1), ("mail", 3)):
        broker.progress(broker.consumer_group(name), orders, 0, next_offset)

    page = ada.sees("")

    assert [row[0] for row in page.table("consumer-groups")] == ["stock", "mail", "coupons"]
    assert "Consumer groups 2 behind" in page.text


def attention(page: Page) -> list[str]:
    """The lines of what needs attention, without their icons."""
    words = page.text.partition("Needs attention")[2].partition("Pending half messages")[0]
    return [line.strip() for line in re.split(r"\b(?:error|autorenew)\b", words)[1:]]


def test_a_broker_in_order_needs_no_attention(broker: Broker, ada: Operator) -> None:
    shop, orders = broker.producer_group("shop"), broker.topic("orders")
    broker.endpoint(shop, "https://shop.example/checks", void_answers=2)
    broker.half(shop, orders, b"x", timedelta(hours=1))
    broker.half(broker.producer_group("polls"), orders, b"x", timedelta(minutes=1))

    assert "Nothing: no dead letter, no discarded transaction" in ada.sees("").text


def test_what_needs_attention_comes_first_and_leads_to_its_page(broker: Broker, ada: Operator) -> None:
    orders, mail = broker.topic("orders"), broker.consumer_group("mail")
    shop, bank = broker.producer_group("shop"), broker.producer_group("bank")
    broker.endpoint(shop, "https://shop.example/checks", void_answers=40, last_answer="The endpoint answered 200.")
    two = {"last_failure_at": broker.now, "failing_since": broker.now - timedelta(hours=7)}
    last = "The endpoint answered 503."
    broker.endpoint(shop, "https://two.example/checks", state="open", failures=9, last_failure=last, **two)
    broker.half(shop, orders, b"x", timedelta(hours=4), discarded_at=broker.now)
    broker.half(bank, orders, b"x", timedelta(hours=1))
    letter = broker.stored(orders, 0, b"x", timedelta(minutes=1))
    given_up.dead_letter(broker, mail, broker.topic("%DLQ%mail", queues=1), letter, 16, timedelta(minutes=3))
    url = "https://mail.example/in"
    given_up.subscription(broker, "mail", "mail", "orders", url, state="disabled", last_failure="410 Gone")
    broker.delayed(level=5, due_in=timedelta(minutes=-2))

    page = ada.sees("")

    lines, died = attention(page), broker.now - timedelta(minutes=3)
    for start in (
        "1 discarded transaction the checks brought no decision",
        f"1 dead letter of mail given up after all retries, the last at {died:%Y-%m-%d %H:%M:%S} UTC: redrive them",
        "1 pending of bank cannot be asked about no endpoint is registered",
        "An endpoint of shop answers, and decides nothing 40 void answers in a row; the last: The endpoint",
        "The subscription mail is disabled https://mail.example/in: 410 Gone",
        "Delayed messages are due and not released",
    ):
        assert any(line.startswith(start) for line in lines), (start, lines)
    assert lines[-1].startswith(
        "An endpoint of shop is paused after 9 failures https://two.example/checks: The endpoint answered 503."
    )
    # Since the first failure, not the last.
    assert "7 h" in lines[-1]
    assert page.links["1 dead letter of mail"] == "/console/dead-letters/mail/"


def test_outboxes_that_fail_are_stuck_or_set_rows_apart_need_attention(broker: Broker, ada: Operator) -> None:
    now, old = broker.now, broker.now - timedelta(minutes=10)
    well = {"looked_at": now, "created_at": old}
    broker.outbox("well", **well)
    broker.outbox("fails", failure="no right: GRANT DELETE", failed_at=old, **well)
    broker.outbox("unseen", looked_at=old, created_at=old)
    broker.outbox("never-seen", created_at=old)
    broker.outbox("behind", waiting=7, oldest_at=old, **well)
    broker.outbox("refuses", refused=3, refused_at=now, **well)
    broker.outbox("refused-once", refused=3, refused_at=now - timedelta(days=1), **well)
    broker.outbox("paused", paused=True, failure="x", failed_at=now, looked_at=old, created_at=old)

    lines = attention(ada.sees(""))

    assert sorted(line.partition("The outbox ")[2].partition(" ")[0] for line in lines) == [
        *("behind", "fails", "never-seen", "refuses", "unseen")
    ]
    assert any("127.0.0.1:9/shop: no right: GRANT DELETE" in line for line in lines)
    assert lines[-1].startswith(
        f"The outbox refuses sets rows apart 3 rows so far, the last at {now:%Y-%m-%d %H:%M:%S}"
    )
    states = {row[0]: row[8] for row in ada.sees("outboxes/").table("outboxes")}
    assert states["fails"].startswith("fails: no right: GRANT DELETE (for 10 min")


def test_consumer_groups_that_are_paused_or_behind_need_attention_and_lead_to_their_page(
    broker: Broker, ada: Operator
) -> None:
    orders = broker.topic("orders", queues=1)
    for age in (40, 2):
        broker.visible(broker.stored(orders, 0, b"x", timedelta(minutes=age)))
    broker.progress(broker.consumer_group("coupons", paused=True), orders, 0, 1)
    broker.progress(broker.consumer_group("done", paused=True), orders, 0, 2)
    broker.progress(broker.consumer_group("mail"), orders, 0, 0)
    broker.progress(broker.consumer_group("stock"), orders, 0, 1)
    stuck = broker.consumer_group("stuck")
    broker.progress(stuck, orders, 0, 2)
    broker.receipt(stuck, orders, 0, 0, "flight", None)

    page = ada.sees("")

    coupons, *others = attention(page)
    assert coupons.startswith("coupons is paused 1 message not handed out: resume it")
    assert {line.partition(" last")[0] for line in others} == {
        "mail is behind 2 messages not handed out, 0 in flight;",
        "stuck does not ack 0 messages not handed out, 1 in flight;",
    }
    assert page.links["coupons is paused"] == "/console/consumer-groups/coupons/"


def test_a_worker_without_a_heartbeat_needs_attention(broker: Broker, ada: Operator) -> None:
    broker.insert("heartbeat", process="worker 7 at a", kind="worker", beaten_at=broker.now - timedelta(seconds=12))

    page = ada.sees("")

    assert "No tick of beat reaches a worker worker 7 at a was the last" in page.text
    assert page.links["No tick of beat reaches a worker"] == "/console/system/"
    broker.insert("heartbeat", process="worker 8 at a", kind="worker", beaten_at=broker.now)
    assert "No tick of beat" not in ada.sees("").text


def test_the_group_that_waits_longest_comes_before_one_with_more_lag(broker: Broker, ada: Operator) -> None:
    orders, stock = broker.topic("orders", queues=1), broker.topic("stock", queues=1)
    broker.visible(broker.stored(orders, 0, b"x", timedelta(minutes=50)))
    for _ in range(5):
        broker.visible(broker.stored(stock, 0, b"x", timedelta(minutes=1)))
    broker.progress(broker.consumer_group("few"), orders, 0, 0)
    broker.progress(broker.consumer_group("many"), stock, 0, 0)

    rows = ada.sees("").table("consumer-groups")

    assert [(row[0], row[2]) for row in rows] == [("few", "1"), ("many", "5")]
    assert rows[0][4].startswith("50 min")
    by_lag = ada.sees("consumer-groups/?by=lag").table("consumer-groups")
    assert [row[0] for row in by_lag] == ["many", "few"]
    assert [row[0] for row in ada.sees("consumer-groups/?by=oldest&q=MAN").table("consumer-groups")] == ["many"]
