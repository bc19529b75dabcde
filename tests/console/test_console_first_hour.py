"""The console in the first hour: a keyboard, a phone and the dark; schedules and outboxes made by forms."""

import re
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from tests.broker.browser import come_in
from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_browser import asked, chromium, complaints, page

__all__ = ["asked", "chromium", "complaints", "page"]

PASSWORD = "let-me-drain"
URL = f"postgresql://drain:{PASSWORD}@127.0.0.1:9/shop"
WHY = "the shop opens"
CUT = """() => {
    const title = document.querySelector("#header-inner h1");
    return title.scrollWidth > title.clientWidth || title.getBoundingClientRect().right > window.innerWidth;
}"""
Form = dict[str, object]


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


def test_a_schedule_is_made_by_a_form_and_its_message_changed(
    broker: Broker, ada: Operator, vic: Operator, page: Page, complaints: list[str]
) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    come_in(page, ada)
    page.goto("/console/schedules/")
    page.get_by_role("link", name="Make a schedule").click()
    page.get_by_label("Name", exact=True).fill("nightly")
    page.get_by_label("Cron", exact=True).fill("0 3 1 1 *")
    page.get_by_label("Time zone", exact=True).fill("Europe/Berlin")
    page.get_by_label("Topic", exact=True).fill("reports")
    page.get_by_label("Body", exact=True).fill("of yesterday\nin two lines")
    page.get_by_label("Reason, for the audit").fill(WHY)
    page.get_by_role("button", name="Make a schedule").click()
    expect(page.locator("#shown")).to_contain_text("nightly")

    [row] = ada.sees("schedules/").table("schedules")
    assert (row[0], row[1], row[2], row[3]) == ("nightly", "reports", "0 3 1 1 *", "Europe/Berlin")
    assert re.match(r"\d{4}-01-01 03:00:00 CET 02:00:00 UTC ", row[4])
    form = ada.sees("actions/once/?action=schedule.message&target=nightly")
    assert 'value="reports"' in form.html
    changed: Form = {"action": "schedule.message", "target": "nightly", "topic": "invoices", "tags": "new"}
    assert ada.posts("actions/once/", {**changed, "reason": WHY}).status == 200
    kept = broker.connection.execute("SELECT message, body, missed FROM schedule").fetchone()
    assert kept is not None
    assert (kept.message, kept.missed) == ({"topic": "invoices", "tags": "new"}, "last")
    assert kept.body["body"].splitlines() == ["of yesterday", "in two lines"]
    pages = (form, ada.sees("audit/?target=nightly"), vic.sees("schedules/"))
    assert not [one.address for one in pages if "of yesterday" in one.html]
    assert complaints == []


def test_a_schedule_that_the_api_would_refuse_is_refused_beside_what_was_typed(
    broker: Broker, ada: Operator, oda: Operator
) -> None:
    given: Form = {"action": "schedule.make", "target": "nightly", "topic": "reports", "body": "x", "reason": WHY}
    broker.schedule("weekly")

    wrong = ada.posts("actions/once/", {**given, "cron": "every day"})
    empty = ada.posts("actions/once/", {**given, "cron": "0 3 * * *", "body": ""})
    taken = ada.posts("actions/once/", {**given, "cron": "0 3 * * *", "target": "weekly"})
    same = ada.posts("actions/once/", {"action": "schedule.message", "target": "weekly", "reason": WHY})
    absent = ada.posts("actions/once/", {**given, "action": "schedule.message", "target": "daily"})

    assert [one.status for one in (wrong, empty, taken, same, absent)] == [422] * 5
    assert "cron 'every day' cannot be read" in wrong.text
    assert 'value="every day"' in wrong.html
    assert "The schedule weekly already exists" in taken.text
    assert "Nothing would change." in same.text
    assert "There is no schedule daily" in absent.text
    assert oda.posts("actions/once/", {**given, "cron": "0 3 * * *"}).status == 403
    assert len(ada.sees("schedules/").table("schedules")) == 1


def test_an_outbox_is_made_by_a_form_that_never_shows_the_password(
    broker: Broker, ada: Operator, oda: Operator
) -> None:
    given: Form = {"action": "outbox.make", "target": "shop", "source_url": URL, "topics": "orders", "reason": WHY}
    form = ada.follows(ada.sees("outboxes/"), "Make an outbox")
    assert '<input type="password" name="source_url"' in form.html

    wrong = ada.posts("actions/once/", {**given, "topics": "orders of today"})
    forbidden = ada.posts("actions/once/", {**given, "source_url": "postgresql://drain@127.0.0.1/shop"})
    made = ada.posts("actions/once/", given)
    again = ada.posts("actions/once/", given)

    assert (wrong.status, forbidden.status, made.status, again.status) == (422, 422, 200, 422)
    assert "url names no password" in forbidden.text
    assert "Server 127.0.0.1:9/shop" in made.text
    assert "The outbox shop already exists" in again.text
    [row] = ada.sees("outboxes/").table("outboxes")
    assert (row[0], row[2]) == ("shop", "orders")
    assert row[8].startswith("fails: ")
    moved = ada.posts(
        "actions/once/", {"action": "outbox.move", "target": "shop", "schema": "sales", "source_url": "", "reason": WHY}
    )
    assert moved.status == 200, moved.text
    kept = broker.connection.execute("SELECT source_url, schema FROM outbox").fetchone()
    assert kept is not None
    assert (kept.source_url, kept.schema) == (URL, "sales")
    shown = ada.sees(f"actions/once/?{urlencode({'action': 'outbox.move', 'target': 'shop'})}")
    pages = [wrong, forbidden, made, again, moved, shown, ada.sees("audit/?target=shop"), ada.sees("outboxes/")]
    assert not [one.address for one in pages if PASSWORD in one.html]
    assert oda.posts("actions/once/", {**given, "target": "other"}).status == 403
