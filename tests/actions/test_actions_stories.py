"""Repairs with a real browser: by a filter, as a canary, after a dry run; and forms that run no payload."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from mqbroker_client import Admin, Consumer, Producer
from playwright.sync_api import Browser, expect

from console.actions.kinds import KINDS, ONCE
from tests.actions.test_actions_browser import PAYLOADS, chromium, visitor
from tests.broker import browser, characters
from tests.broker.browser import Visitor, come_in
from tests.broker.characters import bodies, register
from tests.broker.endpoints import ProducerEndpoint, says
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import received_until_empty
from tests.broker.wire import Wire
from tests.console.operators import Operator

__all__ = ["chromium", "visitor"]

PAGES = {"new_action": "/console/actions/new/", "once": "/console/actions/once/"}


@pytest.fixture
def admin(chromium: Browser, broker: RunningBroker, users: dict[str, Operator]) -> Iterator[Visitor]:
    """The admin at the console's overview."""
    with browser.visiting(chromium, broker.url) as visitor:
        come_in(visitor.page, users["ada"])
        yield visitor


def confirms(visitor: Visitor, button: str, reason: str) -> None:
    """Gives the reason for what is previewed, and waits until it is done."""
    visitor.page.get_by_label("Reason, for the audit").fill(reason)
    visitor.click(button, "button")
    expect(visitor.page.locator("#state")).to_have_text("done")


@pytest.mark.long
def test_two_hundred_discarded_are_resumed_by_their_filter_in_a_browser(
    visitor: Visitor, broker: RunningBroker, wire: Wire, endpoint: ProducerEndpoint
) -> None:
    group, topic = characters.name("order-service"), characters.name("orders")
    endpoint.replies(says(500))
    wire.bulk(*([{"op": "half", "topic": topic, "body": "order", "producer_group": group}] * 200))
    register(broker, group, endpoint.url, max_batch=100)
    listed = f"/v1/discarded?limit=200&producer_group={group}"
    eventually(lambda: len(wire.get(listed).document["results"]) == 200, within_seconds=180)
    wire.call("PUT", f"/v1/producer-groups/{group}", b'{"checks_paused": true}')

    visitor.page.goto("/console/transactions/discarded/")
    visitor.page.get_by_label("Producer group").fill(group)
    visitor.click("Filter", "button")
    visitor.click("Resume all that match")
    expect(visitor.page.locator("main")).to_contain_text("200 transactions that match")
    confirms(visitor, "Resume", "the endpoint answers again")

    expect(visitor.page.locator("#progress")).to_have_text("200 of 200")
    assert wire.get(listed).document["results"] == []
    assert wire.get(f"/v1/producer-groups/{group}").document["pending"] == 200
    assert visitor.complaints == []


@pytest.mark.long
def test_dead_letters_are_redriven_ten_as_a_canary_and_then_all_in_a_browser(
    visitor: Visitor, broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    for number in range(13):
        producer.send(orders, f"order {number}".encode(), queue_id=0)
    while deliveries := consumer.receive(orders):
        consumer.nack(deliveries, reason="no such address")
    letters = f"/console/dead-letters/{consumer.group}/"

    visitor.page.goto(letters)
    visitor.click("Redrive 10 as a canary")
    expect(visitor.page.locator("#preview")).to_contain_text("no such address")
    confirms(visitor, "Redrive", "the address is mended")
    first = bodies(received_until_empty(consumer, orders))
    visitor.page.goto(letters)
    visitor.click("Redrive all")
    confirms(visitor, "Redrive", "the canary lives")

    assert first == [f"order {number}".encode() for number in range(10)]
    assert bodies(received_until_empty(consumer, orders)) == [f"order {number}".encode() for number in (10, 11, 12)]
    assert visitor.complaints == []


@pytest.mark.long
def test_a_group_is_reset_after_a_dry_run_in_a_browser(
    visitor: Visitor, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1", queue_id=0)
    consumer.ack(consumer.receive(orders))
    page = visitor.page

    page.goto(f"/console/consumer-groups/{consumer.group}/")
    visitor.click("Reset offsets")
    page.get_by_label("Topic", exact=True).fill(orders)
    page.get_by_label("To", exact=True).fill("earliest")
    visitor.click("Preview", "button")
    expect(page.locator("#dry-run tbody tr").first).to_contain_text("1")
    confirms(visitor, "Reset offsets", "the coupons were lost")

    assert bodies(consumer.receive(orders)) == [b"order 1"]
    assert visitor.complaints == []


def test_a_key_is_made_and_revoked_in_a_browser_and_refused_within_five_seconds(
    admin: Visitor, broker: RunningBroker
) -> None:
    name, page = characters.name("shop-key"), admin.page
    page.goto("/console/api-keys/")
    admin.click("Make an API key")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("manage", exact=True).check()
    page.get_by_label("Reason, for the audit").fill("a new shop")
    admin.click("Make an API key", "button")
    shop = Wire(broker.urls[1], page.locator("#secret").inner_text())
    assert shop.get("/v1/transactions/none").status == 404

    page.goto(f"/console/api-keys/?q={name}")
    page.locator("main").get_by_role("link", name="Revoke").click()
    expect(page.locator("#preview")).to_contain_text("manage")
    confirms(admin, "Revoke", "it leaked")

    eventually(lambda: shop.get("/v1/transactions/none").status == 401, within_seconds=5)
    assert admin.complaints == []


def test_a_topic_is_made_in_a_browser(visitor: Visitor, wire: Wire) -> None:
    name, page = characters.name("orders"), visitor.page
    page.goto("/console/topics/")
    visitor.click("Make a topic")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Queues", exact=True).fill("6")
    visitor.click("Preview", "button")
    expect(page.locator("#changes")).to_contain_text("6")
    confirms(visitor, "Make a topic", "a new shop")

    assert wire.get(f"/v1/topics/{name}").document["queues"] == 6
    assert visitor.complaints == []


@pytest.mark.timeout(300)
def test_payloads_in_every_field_of_every_form_run_nothing(admin: Visitor) -> None:

    for number, (name, kind) in enumerate({**KINDS, **ONCE}.items()):
        payload = PAYLOADS[number % len(PAYLOADS)]
        given = {"action": name, "target": payload, **{one.column: payload for one in kind.fields}}
        answer = admin.page.goto(f"{PAGES[kind.page]}?{urlencode(given)}")
        assert answer is not None
        assert answer.status in (200, 422), name

    assert [one for one in admin.complaints if "status of 4" not in one] == []
