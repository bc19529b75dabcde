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
        page.goto("/console/auth/user/")
        page.get_by_role("link", name="oidc:1").first.click()
        page.get_by_label("First name").fill("Maria")
        expect(page.get_by_label("Username")).to_have_count(0)
        console.makes_sessions_due()
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page).to_have_url(f"{console.url}/console/auth/user/")
        expect(page.get_by_text("was changed successfully").first).to_be_visible()

        provider.ends_sessions()
        console.makes_sessions_due()
        page.goto("/console/topics/")
        expect(page).to_have_url(f"{console.url}/console/login/")
        assert [complaint for complaint in visitor.complaints if "Content Security Policy" in complaint] == []
