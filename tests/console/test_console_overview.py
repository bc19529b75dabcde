"""Promises of the overview: its figures agree with what is there."""

import html
import json
import re
from datetime import timedelta

from tests.console.operators import Operator
from tests.console.rows import Broker


def test_the_figures_agree_with_what_is_there(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    broker.half(shop, orders, b"x", timedelta(minutes=7))
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
