"""What an operator does with a real browser: finds, sees why, repairs, is on record; and no page breaks the policy."""

import re
import uuid
from collections.abc import Iterator

import pytest
from mqbroker_client import Consumer, Producer
from playwright.sync_api import Browser, expect

from console.pages.routes import ROUTES
from mqbroker.web.content_policy import POLICY
from tests.broker import browser, characters
from tests.broker.browser import Visitor, come_in
from tests.broker.characters import bodies
from tests.broker.endpoints import ProducerEndpoint, says
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import told
from tests.broker.wire import Wire
from tests.console.operators import Operator

PAYLOADS = [
    "<script>alert(1)</script>",
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<img src=x onerror=alert(1)//",
    "javascript:alert(1)",
    "{{7*7}}{% debug %}",
    "${alert(1)}",
    "`${alert(1)}`",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<a href=javascript:alert(1)>x</a>",
    "<body onload=alert(1)>",
    '<math><mi//xlink:href="data:x,<script>alert(1)</script>">',
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    '<div x-data x-init="alert(1)">',
    "<div hx-get=/console/ hx-trigger=load hx-on::load=alert(1)>",
    "<style>@import'javascript:alert(1)'</style>",
    "<base href=//evil.example/>",
    "\u2028alert(1)\u2029<!--",
]  # fmt: skip -- one payload to a line


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.chromium() as opened:
        yield opened


@pytest.fixture
def visitor(chromium: Browser, broker: RunningBroker, users: dict[str, Operator]) -> Iterator[Visitor]:
    """The operator at the console's overview."""
    with browser.visiting(chromium, broker.url) as visitor:
        come_in(visitor.page, users["oda"])
        yield visitor


def test_order_4711_is_found_by_its_key_and_committed_with_a_reason_in_five_clicks(
    visitor: Visitor,
    wire: Wire,
    producer: Producer,
    producer_endpoint: ProducerEndpoint,
    consumer: Consumer,
    orders: str,
) -> None:
    producer_endpoint.replies(says(500))
    key = characters.name("order-4711")
    pending = str(producer.begin(orders, b"order 4711", keys=[key]).transaction_id)
    page = visitor.page

    eventually(lambda: producer_endpoint.about(pending))
    page.keyboard.press("/")
    page.keyboard.type(f"key:{key} topic:{orders}")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text(key)
    visitor.clicks += 1
    page.locator("main").get_by_role("link", name=re.compile("PREPARED|DISCARDED")).click()
    expect(page.locator("#history")).to_contain_text("The endpoint answered 500", timeout=10_000)
    visitor.click("Commit")
    expect(page.locator("#preview")).to_contain_text(producer.group)
    page.get_by_label("Reason, for the audit").fill("paid, says the bank")
    visitor.click("Commit", "button")
    expect(page.locator("#results")).to_contain_text("done")
    visitor.click("Show in the audit")
    expect(page.locator("#audit")).to_contain_text("paid, says the bank")

    assert visitor.clicks <= 5
    assert bodies(consumer.receive(orders)) == [b"order 4711"]
    assert told(wire, pending)["state"] == "COMMITTED"
    assert visitor.complaints == []


def test_the_selected_of_a_list_that_renews_itself_are_rolled_back(
    visitor: Visitor, wire: Wire, producer: Producer, orders: str
) -> None:
    first, second, third = (str(producer.begin(orders, b"order").transaction_id) for _ in range(3))
    page = visitor.page
    page.goto(f"/console/transactions/pending/?producer_group={producer.group}")

    for transaction_id in (first, third):
        page.get_by_label(f"Select {transaction_id}").check()
    with page.expect_response(lambda response: "pending" in response.url):
        page.wait_for_timeout(10)
    visitor.click("Roll back selected", "button")
    expect(page.locator("#preview tr")).to_have_count(2)
    page.get_by_label("Reason, for the audit").fill("of a test")
    visitor.click("Roll back", "button")
    expect(page.locator("#state")).to_have_text("done")

    assert [told(wire, one)["state"] for one in (first, second, third)] == ["ROLLED_BACK", "PREPARED", "ROLLED_BACK"]
    assert visitor.complaints == []


def test_payloads_in_every_field_run_nothing_and_no_page_breaks_the_policy(
    visitor: Visitor, users: dict[str, Operator], wire: Wire, producer: Producer, orders: str
) -> None:
    properties = {f"p{number}": payload for number, payload in enumerate(PAYLOADS)}
    keys = [re.sub(r"\s", "", payload) for payload in PAYLOADS]
    half = producer.begin(orders, "\n".join(PAYLOADS).encode(), keys=keys, tags=keys[0], properties=properties)
    transaction_id = str(half.transaction_id)
    wire.post(f"/v1/transactions/{transaction_id}/resolve", {"state": "COMMIT", "reason": " ".join(PAYLOADS)})
    consumers = characters.name("coupons")
    wire.call("PUT", f"/v1/consumer-groups/{consumers}", b"{}")
    acted = users["oda"].posts(
        "actions/new/", {"action": "consumer_group.pause", "target": [consumers, *PAYLOADS], "reason": PAYLOADS[0]}
    )
    values = {
        "<uuid:transaction_id>": transaction_id,
        "<uuid:message_id>": str(half.messages[0].message_id),
        "<uuid:action_id>": acted.address.rstrip("/").rpartition("/")[2],
    }
    own = [
        re.sub(r"<\w+:\w+>", lambda found: values.get(found[0], consumers), route)
        for route, _, _ in ROUTES
        if "steer" not in route
    ]
    fields = ("producer_group", "topic", "author", "action", "target", "after", "q", "name", "to", "group")
    answers: dict[str, str | None] = {}
    for path in ["login/", "", *own]:
        answer = visitor.page.goto(f"/console/{path}?{'&'.join(f'{name}={PAYLOADS[1]}' for name in fields)}")
        assert answer is not None
        answers[path] = answer.headers.get("content-security-policy")
    answers["docs"] = (visitor.page.goto("/docs") or pytest.fail("no page")).headers.get("content-security-policy")
    expect(visitor.page.locator(".opblock").first).to_be_visible()

    assert set(answers.values()) == {POLICY}
    refused = [one for one in visitor.complaints if "status of 4" not in one]
    assert refused == []


def test_a_page_has_one_main_landmark(visitor: Visitor) -> None:
    for path in ("", "transactions/pending/", f"transactions/{uuid.uuid4()}/", "api-keys/", "actions/", "audit/"):
        visitor.page.goto(f"/console/{path}")
        expect(visitor.page.get_by_role("main")).to_have_count(1)
