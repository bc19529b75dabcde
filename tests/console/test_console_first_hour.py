"""The console in the first hour: a keyboard, a phone and the dark."""

from playwright.sync_api import Page, expect

from tests.broker.browser import come_in
from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_browser import asked, chromium, complaints, page

__all__ = ["asked", "chromium", "complaints", "page"]

CUT = """() => {
    const title = document.querySelector("#header-inner h1");
    return title.scrollWidth > title.clientWidth || title.getBoundingClientRect().right > window.innerWidth;
}"""


def test_the_first_key_leads_past_the_sidebar(broker: Broker, ada: Operator, page: Page) -> None:
    come_in(page, ada)
    expect(page.locator("#pending-halves")).to_be_visible()

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.get_by_role("main")).to_be_focused()


def test_a_phone_shows_the_whole_title_of_each_page(broker: Broker, ada: Operator, page: Page) -> None:
    name = "orders-of-the-shop-" * 4
    broker.topic(name)
    page.set_viewport_size({"width": 360, "height": 800})
    come_in(page, ada)

    for place in ("transactions/discarded/", "consumer-groups/", f"topics/{name}/", "schedules/"):
        page.goto(f"/console/{place}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert not page.evaluate(CUT), place
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, place


def test_the_reference_of_the_api_has_the_colours_of_the_console(broker: Broker, ada: Operator, page: Page) -> None:
    come_in(page, ada)

    page.goto("/docs", wait_until="domcontentloaded")
    expect(page.locator("html")).to_have_class("dark-mode")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(28, 32, 34)"
    page.evaluate("""localStorage.setItem("_x_adminTheme", '"light"')""")
    page.reload(wait_until="domcontentloaded")

    expect(page.locator("html")).to_have_class("")
