"""Promises of every page about what others wrote: a payload in any field is shown as text, and runs nothing."""

from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

from playwright.sync_api import Page

from tests.broker.browser import come_in
from tests.console import given_up
from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_browser import asked, chromium, complaints, page

__all__ = ["asked", "chromium", "complaints", "page"]

RUN = "window.ran=1"
PAYLOADS = (
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f'"><img src=x onerror={RUN}>',
    f"'><svg onload={RUN}>",
    f"<svg/onload={RUN}>",
    f'" onmouseover="{RUN}" autofocus onfocus="{RUN}" x="',
    f"javascript:{RUN}",
    f"<a href=javascript:{RUN} autofocus>x</a>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<details open ontoggle={RUN}>",
    f"<body onload={RUN}>",
    f"<div x-data x-init={RUN}></div>",
    f'" x-data x-init="{RUN}',
    "<div hx-get=/evil hx-trigger=load></div>",
    f'<div hx-on:load="{RUN}" hx-get=/x hx-trigger=load></div>',
    "{{constructor.constructor('" + RUN + "')()}}",
    "{% debug %}{{ request }}",
    f"</title></textarea></pre><script>{RUN}</script>",
    f"<style>@import '/evil';</style><link rel=stylesheet href=/evil><base href='javascript:{RUN}'>",
)
PAGES = (
    "",
    "transactions/pending/",
    "transactions/discarded/",
    "transactions/ended/",
    "producer-groups/",
    "topics/",
    "topics/?own=1",
    "consumer-groups/",
    "dead-letters/",
    "subscriptions/",
    "system/",
)


def write(broker: Broker, payload: str) -> list[str]:
    """The payload in every field that the console shows; pages that show it alone."""
    topic, shop = broker.topic(payload, queues=1), broker.producer_group(payload)
    endpoint = broker.endpoint(shop, payload, void_answers=9, last_answer=payload, last_failure=payload)
    broker.endpoint(shop, payload + "2", state="open", last_failure=payload, last_failure_at=broker.now)
    fields: dict[str, Any] = {
        "tags": payload,
        "keys": [payload],
        "properties": {payload: payload},
        "traceparent": payload,
    }
    half = broker.half(shop, topic, payload.encode(), timedelta(hours=1), last_failure=payload, **fields)
    broker.half(shop, topic, payload.encode(), timedelta(hours=1), last_failure=payload, discarded_at=broker.now)
    broker.check(half, timedelta(minutes=1), (endpoint, payload), status=200, reason=payload)
    plain = {**fields, "sharding_key": payload}
    message = broker.stored(topic, 0, payload.encode(), timedelta(minutes=1), **plain)
    broker.visible(message)
    mail, dead = broker.consumer_group(payload), broker.topic(f"%DLQ%{payload}", queues=1)
    broker.progress(mail, topic, 0, 0)
    given_up.dead_letter(broker, mail, dead, message, 16, timedelta(minutes=1), reason=payload)
    given_up.subscription(broker, payload, payload, payload, payload, last_failure=payload, state="open")
    broker.api_key(payload, payload, [payload], uuid4().bytes)
    return [f"transactions/{half}/", f"messages/{message.message_id}/", f"find/?q={quote(payload)}"]


def test_twenty_payloads_in_every_field_run_nothing(
    broker: Broker, ada: Operator, page: Page, console: str, asked: list[str]
) -> None:
    assert len(PAYLOADS) == len(set(PAYLOADS)) == 20
    named = [path for payload in PAYLOADS for path in write(broker, payload)]
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    come_in(page, ada)
    page.wait_for_url("**/console/")

    for path in (*PAGES, "mqbroker/apikey/", "transactions/endpoint/", *named):
        page.goto(f"/console/{path}", wait_until="domcontentloaded")
        assert page.evaluate("window.ran") is None, path

    assert dialogs == []
    assert [
        one for one in asked if not one.startswith(f"{console}/console/") and urlsplit(one).path[:8] != "/static/"
    ] == []
