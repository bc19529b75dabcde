"""Promises that need a real browser: clicks, narrow screens, the dark, and that nothing is fetched from elsewhere."""

from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.broker import browser
from tests.broker.browser import PATIENT_MS, come_in
from tests.console.conftest import PASSWORD
from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_reports import chart


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.chromium() as opened:
        yield opened


@pytest.fixture
def asked() -> list[str]:
    """The addresses that the browser asked for."""
    return []


@pytest.fixture
def complaints() -> list[str]:
    """What the pages' scripts complained about."""
    return []


@pytest.fixture
def page(chromium: Browser, console: str, asked: list[str], complaints: list[str]) -> Iterator[Page]:
    """A narrow, dark screen at the sign-in page; its clock runs, and can be moved."""
    context = chromium.new_context(
        base_url=console,
        viewport={"width": 420, "height": 800},
        color_scheme="dark",
        locale="en-US",
        timezone_id="Asia/Kathmandu",
    )
    page = context.new_page()
    page.set_default_timeout(PATIENT_MS)
    page.clock.install()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto("/console/")
    yield page
    context.close()


def sign_in(page: Page) -> None:
    """Come in as the admin."""
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()


def test_an_operator_signs_in_and_clicks_through_to_one_transaction(
    broker: Broker, page: Page, console: str, asked: list[str], complaints: list[str]
) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    half = broker.half(shop, orders, b'{"order": 1}', timedelta(minutes=5), check_times=3)
    broker.check(half, timedelta(minutes=1), (1, "https://shop.example/checks"), status=503, latency_ms=4)
    broker.committed(shop, orders, b"x", timedelta(minutes=5))

    page.set_viewport_size({"width": 1280, "height": 800})
    expect(page.get_by_label("Username")).to_be_focused()
    sign_in(page)
    expect(page.locator("#pending-halves")).to_have_text("1")
    # Its name is without that of its icon.
    page.get_by_role("link", name="Pending half messages", exact=True).click()
    page.get_by_role("link", name=str(half)).click()

    expect(page.locator("#history")).to_contain_text("https://shop.example/checks")
    expect(page.locator(".mq-message")).to_contain_text('{"order": 1}')
    assert {urlsplit(address).netloc for address in asked} == {urlsplit(console).netloc}
    assert complaints == []


def test_a_browser_without_scripts_shows_the_pages_and_leaves_them(
    broker: Broker, chromium: Browser, console: str
) -> None:
    half = broker.half(broker.producer_group("shop"), broker.topic("orders"), b"x", timedelta(minutes=5))
    page = chromium.new_page(base_url=console, java_script_enabled=False, viewport={"width": 1280, "height": 800})
    page.set_default_timeout(PATIENT_MS)
    page.goto("/console/")

    sign_in(page)
    page.get_by_role("link", name="Pending half messages").first.click()
    page.get_by_role("link", name=str(half)).click()
    expect(page.locator("#history")).to_contain_text("the half message was stored")
    page.get_by_role("button", name="Log out").click()

    expect(page.get_by_role("link", name="Log in again")).to_be_visible()
    page.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_pages_with_long_names_fit_the_screen_in_the_dark(
    broker: Broker, ada: Operator, page: Page, complaints: list[str], width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    topic, group, coupons = "orders" * 20, "shop" * 25, "coupons" * 15
    orders, shop = broker.topic(topic), broker.producer_group(group)
    broker.endpoint(shop, "https://a-rather-long-name.internal.shop.example/mq/checks/of/transactions")
    half = broker.half(shop, orders, b"word " * 100, timedelta(minutes=5), last_failure="refused " * 20)
    broker.committed(shop, orders, b"x", timedelta(minutes=5))
    broker.progress(broker.consumer_group(coupons), orders, 0, 1)

    come_in(page, ada)

    places = (
        "",
        f"transactions/{half}/",
        "transactions/pending/",
        "transactions/discarded/",
        "topics/",
        "transactions/ended/",
        f"topics/{topic}/",
    )
    more = (
        "delays/",
        "producer-groups/",
        f"producer-groups/{group}/",
        "consumer-groups/",
        f"consumer-groups/{coupons}/",
    )
    for place in places + more:
        page.goto(f"/console/{place}")
        expect(page.locator("html")).to_have_class("dark")
        too_wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert too_wide <= 0, f"{place} is {too_wide} pixels too wide"
    assert complaints == []


def test_the_charts_of_the_reports_are_drawn_by_scripts_of_this_origin_alone(
    broker: Broker, ada: Operator, page: Page, console: str, asked: list[str], complaints: list[str]
) -> None:
    series = {"committed": [3, 4], "rolled back": [1, 0]}
    chart(broker, 0, "Transactions by hour", ["03-01 12:00", "03-01 13:00"], series)
    come_in(page, ada)
    expect(page.locator("#pending-halves")).to_be_visible()
    page.goto("/console/reports/")

    expect(page.get_by_role("img", name="Transactions by hour")).to_be_visible()
    expect(page.locator("#as-of")).to_contain_text("As of")
    drawn = "Chart.getChart(document.querySelector('canvas.chart')).data.datasets.map((one) => one.data)"
    assert page.evaluate(drawn) == [[3, 4], [1, 0]]
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert {urlsplit(address).netloc for address in asked} == {urlsplit(console).netloc}
    assert complaints == []


def test_the_list_of_the_pending_renews_itself(
    broker: Broker, ada: Operator, page: Page, complaints: list[str]
) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    first = broker.half(shop, orders, b"x", timedelta(minutes=5))
    come_in(page, ada)
    page.goto("/console/transactions/pending/")
    expect(page.locator("#pending tbody tr")).to_have_count(1)

    second = broker.half(shop, orders, b"x", timedelta(minutes=1))
    page.clock.fast_forward(5_000)

    expect(page.locator("#pending tbody")).to_contain_text(str(second))
    expect(page.locator("#pending tbody")).to_contain_text(str(first))
    assert complaints == []


def test_a_list_that_renews_itself_leads_to_the_sign_in_page_when_the_session_is_over(
    broker: Broker, ada: Operator, page: Page
) -> None:
    broker.half(broker.producer_group("shop"), broker.topic("orders"), b"x", timedelta(minutes=5))
    come_in(page, ada)
    page.goto("/console/transactions/pending/")

    page.context.clear_cookies()
    page.clock.fast_forward(5_000)

    expect(page.get_by_label("Password")).to_be_visible()
