"""Promises of pages that renew themselves: all of it, in place, and a notice when they no longer do."""

from datetime import timedelta

from playwright.sync_api import Page, expect

from tests.broker.browser import come_in
from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_browser import asked, chromium, complaints, page

__all__ = ["asked", "chromium", "complaints", "page"]


def test_the_whole_overview_renews_itself_and_keeps_focus_and_selection(
    broker: Broker, ada: Operator, page: Page, complaints: list[str]
) -> None:
    orders = broker.topic("orders", queues=1)
    for number in range(2):
        broker.visible(broker.stored(orders, 0, b"x", timedelta(minutes=5)))
        broker.progress(broker.consumer_group(f"group-{number}"), orders, 0, 0)
    come_in(page, ada)
    expect(page.locator("#pending-halves")).to_have_text("0")
    link = page.get_by_role("link", name="group-1", exact=True)
    link.focus()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#stored'))")
    page.evaluate("window.scrollTo(0, 200)")

    shop = broker.producer_group("shop")
    broker.half(shop, orders, b"x", timedelta(hours=1))
    broker.committed(shop, orders, b"x", timedelta(minutes=4))
    broker.progress(broker.consumer_group("a-new-one"), orders, 0, 0)
    page.clock.fast_forward(10_000)

    expect(page.locator("#pending-halves")).to_have_text("1")
    expect(page.locator("#attention")).to_contain_text("1 pending of shop cannot be asked about")
    expect(page.locator("#consumer-groups")).to_contain_text("a-new-one")
    expect(page.locator("#committed")).to_have_text("1")
    expect(link).to_be_focused()
    assert page.evaluate("getSelection().anchorNode.id || getSelection().anchorNode.parentNode.id") == "stored"
    assert page.evaluate("window.scrollY") == 200
    assert complaints == []


def test_a_page_that_is_not_renewed_says_so_until_it_is(broker: Broker, ada: Operator, page: Page) -> None:
    broker.half(broker.producer_group("shop"), broker.topic("orders"), b"x", timedelta(minutes=5))
    come_in(page, ada)
    page.goto("/console/transactions/pending/")
    notice = page.locator("#mq-stale")
    expect(notice).to_be_hidden()

    page.route("**/console/transactions/pending/**", lambda route: route.abort())
    page.clock.run_for(20_000)

    expect(notice).to_be_visible()
    expect(notice).to_contain_text("the broker does not answer")
    page.unroute("**/console/transactions/pending/**")
    page.clock.run_for(6_000)
    expect(notice).to_be_hidden()


def test_times_are_in_the_browsers_zone_and_utc_when_pointed_at(
    broker: Broker, ada: Operator, page: Page, complaints: list[str]
) -> None:
    message = broker.stored(broker.topic("orders"), 0, b"x", timedelta(minutes=5))
    come_in(page, ada)
    page.goto(f"/console/messages/{message.message_id}/")

    shown = page.locator("time[data-clock]").first

    # Nepal is a quarter of an hour off.
    local = (message.stored_at + timedelta(hours=5, minutes=45)).strftime("%Y-%m-%d %H:%M:%S.")
    expect(shown).to_contain_text(local)
    expect(shown).to_contain_text("GMT+5:45")
    assert str(shown.get_attribute("title")) == message.stored_at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"
    assert complaints == []


def test_the_key_slash_goes_to_the_search_box(broker: Broker, ada: Operator, page: Page) -> None:
    broker.topic("orders")
    come_in(page, ada)
    page.wait_for_url("**/console/")

    page.keyboard.press("/")
    box = page.locator("#mq-search")
    expect(box).to_be_focused()
    box.press_sequentially("topic:ord")
    expect(page.locator("#mq-suggestions option")).to_have_attribute("value", "topic:orders")
    box.fill("topic:orders")
    box.press("Enter")

    expect(page).to_have_url("/console/topics/orders/")
