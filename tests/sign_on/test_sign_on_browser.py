"""The sign-on in a real browser: from a page of the console to the provider and back, and its renewal after a form."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.broker import browser
from tests.broker.browser import visiting
from tests.sign_on.people import Console, Person, Provider
from tests.sign_on.provider.__main__ import PASSWORD


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.chromium() as opened:
        yield opened


def test_a_person_clicks_through_and_stays_signed_in_as_long_as_at_the_provider(
    chromium: Browser, mia: Person, console: Console, provider: Provider
) -> None:
    provider.gives_roles("mia", "admin")
    with visiting(chromium, console.url) as visitor:
        page = visitor.page
        page.goto("/console/topics/")
        visitor.click("Sign in with 127.0.0.1")
        page.get_by_label("Username").fill("mia")
        page.get_by_label("Password").fill(PASSWORD)
        visitor.click("Log in", role="button")
        expect(page).to_have_url(f"{console.url}/console/topics/")
        assert visitor.complaints == []

        # The form's answer leads to a page, and the session of this page is due.
        page.goto("/console/users/")
        page.locator("main").get_by_role("link", name="Change", exact=True).click()
        expect(page.get_by_role("heading", name="User oidc:1")).to_be_visible()
        page.get_by_label("Message bodies").select_option("yes")
        page.get_by_role("button", name="Preview").click()
        page.get_by_label("Reason, for the audit").fill("of a test")
        console.makes_sessions_due()
        page.get_by_role("button", name="Change", exact=True).click()
        expect(page.locator("#results")).to_contain_text("done")

        provider.ends_sessions()
        console.makes_sessions_due()
        page.goto("/console/topics/")
        expect(page).to_have_url(f"{console.url}/console/login/")
        assert [complaint for complaint in visitor.complaints if "Content Security Policy" in complaint] == []
