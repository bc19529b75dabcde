"""The pictures of docs/images: `MQ_SCREENSHOTS=docs/images ./mq test tests/console/test_console_screenshots.py`.

Without the variable they are drawn into a folder of the test: each page of a busy hour renders without a complaint.
"""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page

from tests.broker.browser import come_in
from tests.console import given_up
from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_browser import chromium

__all__ = ["chromium"]

MINUTE = timedelta(minutes=1)
REASONS = ("SMTP 550: no such user", "SMTP 451: greylisted, try later", "The endpoint answered 503.")


def story(broker: Broker) -> dict[str, Any]:
    """A busy hour of a shop, whose bank answers nonsense and whose mail server refuses; what pages are named by."""
    orders, coupons = broker.topic("orders"), broker.topic("coupons")
    shop, bank = broker.producer_group("order-service"), broker.producer_group("bank")
    broker.endpoint(
        shop, "https://orders.internal.example/checks", last_success_at=broker.now, last_answer="200, COMMIT"
    )
    bank_url = "https://bank.internal.example/checks"
    since: dict[str, Any] = {"void_since": broker.now - 40 * MINUTE, "last_answer_at": broker.now - MINUTE}
    broker.endpoint(bank, bank_url, void_answers=212, last_answer='The endpoint answered 200. {"ok": true}', **since)
    for minute in range(58, 0, -1):
        for number in range(3 + minute % 5):
            broker.committed(shop, orders, b"x", minute * MINUTE, keys=[f"order-{4000 + minute * 10 + number}"])
        if minute % 4 == 0:
            broker.rolled_back(shop, orders, minute * MINUTE)
    failing: dict[str, Any] = {
        "check_times": 9,
        "last_failure": 'The endpoint answered 200. {"ok": true}',
        "keys": ["order-4711"],
    }
    body = b'{"order": 4711, "customer": 7, "total": "59.90 EUR"}'
    pending = broker.half(bank, orders, body, 42 * MINUTE, properties={"region": "eu"}, **failing)
    for check in range(9, 0, -1):
        answer = {"status": 200, "latency_ms": 7, "answer": "UNKNOWN", "reason": failing["last_failure"]}
        broker.check(pending, check * 4 * MINUTE, (2, bank_url), **answer)
    for number in range(6):
        broker.half(shop, orders, b"x", timedelta(seconds=3 + number), keys=[f"order-{4712 + number}"])
    for number in range(3):
        discarded = {
            "discarded_at": broker.now - 20 * MINUTE,
            "check_times": 15,
            "last_failure": failing["last_failure"],
        }
        broker.half(bank, orders, b"x", 90 * MINUTE, keys=[f"order-{3990 + number}"], **discarded)
    mail, stock = broker.consumer_group("mail"), broker.consumer_group("stock")
    letters = broker.topic("%DLQ%mail", queues=1)
    message = None
    for number in range(14):
        message = broker.stored(
            orders, 1, body, 30 * MINUTE, keys=[f"order-{4100 + number}"], tags=("paid", "gift")[number % 2]
        )
        broker.visible(message)
        given_up.dead_letter(broker, mail, letters, message, 16, number * 5 * MINUTE, REASONS[number % 5 % 3])
    for _ in range(9):
        broker.visible(broker.stored(coupons, 0, b"x", 6 * MINUTE))
    broker.progress(mail, orders, 1, 14, moves=5)
    broker.progress(stock, coupons, 0, 2, moves=2)
    sms = {
        "state": "open",
        "failures": 6,
        "last_failure": "The endpoint answered 503.",
        "failing_since": broker.now - 9 * MINUTE,
    }
    given_up.subscription(broker, "sms", "mail", "coupons", "https://sms.internal.example/in", **sms)
    assert message is not None
    return {"transaction": pending, "message": message.message_id}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where pictures are kept: the folder that MQ_SCREENSHOTS names, or the test's own."""
    return Path(os.environ.get("MQ_SCREENSHOTS") or tmp_path)


@pytest.fixture
def desktop(chromium: Browser, console: str) -> Iterator[Page]:
    """A desktop's screen at the sign-in page."""
    context = chromium.new_context(
        base_url=console,
        viewport={"width": 1360, "height": 850},
        color_scheme="light",
        locale="en-US",
        timezone_id="UTC",
        device_scale_factor=1,
    )
    page = context.new_page()
    page.goto("/console/")
    yield page
    context.close()


def test_pictures_of_the_console(broker: Broker, ada: Operator, desktop: Page, folder: Path) -> None:
    named = story(broker)
    complaints: list[str] = []
    desktop.on("pageerror", lambda error: complaints.append(str(error)))
    come_in(desktop, ada)
    desktop.wait_for_url("**/console/")

    for picture, path in (
        ("overview", ""),
        ("console", "transactions/pending/"),
        ("transaction", f"transactions/{named['transaction']}/"),
        ("message", f"messages/{named['message']}/"),
        ("dead-letters", "dead-letters/mail/"),
        ("search", "find/?q=order-4711"),
        ("system", "system/"),
        ("action", f"actions/new/?action=dead_letter.redrive&all=1&group=mail&last_reason={quote(REASONS[0])}"),
    ):
        desktop.goto(f"/console/{path}", wait_until="networkidle")
        desktop.screenshot(path=folder / f"{picture}.png")
        assert (folder / f"{picture}.png").stat().st_size > 20_000

    assert complaints == []
