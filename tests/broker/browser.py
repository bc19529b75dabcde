"""A real browser for tests: Debian's Chromium, and a page that notes what it ran, refused or complained about."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests import packages
from tests.console.operators import Operator

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# A click, a page or what is expected of one, on a machine that does other work: a sign-in hashes a password at a low
# priority.
PATIENT_MS = 60_000
expect.set_options(timeout=PATIENT_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; closed with its module, so that no event loop of its own meets the tests that follow."""
    if not Path(CHROMIUM).exists():
        packages.skip_for_want_of("chromium", "Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Visitor:
    """A user of the console with a browser, whose clicks are counted."""

    page: Page
    clicks: int = 0
    complaints: list[str] = field(default_factory=list)

    def click(self, name: str, role: str = "link") -> None:
        """Clicks the link or button of this name."""
        self.clicks += 1
        self.page.get_by_role(role, name=name, exact=True).first.click()  # type: ignore[arg-type]  # a literal of ARIA's


def come_in(page: Page, operator: Operator) -> None:
    """Shows the console's overview to one who is signed in already: a sign-in takes half a second of CPU."""
    cookies = [(cookie.name, cookie.value or "") for cookie in operator.cookies]
    page.context.add_cookies([{"name": name, "value": value, "url": operator.console} for name, value in cookies])
    page.goto(f"{operator.console}/console/")


@contextmanager
def visiting(browser: Browser, url: str) -> Iterator[Visitor]:
    """A visitor with a window of its own; its errors, dialogs and violations of the content policy are complaints."""
    context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 900}, locale="en-US")
    page = context.new_page()
    page.set_default_timeout(PATIENT_MS)
    visitor = Visitor(page)
    complaints = visitor.complaints
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)

    def dismiss(dialog: object) -> None:
        complaints.append("a dialog was opened")
        dialog.dismiss()  # type: ignore[attr-defined]  # playwright's Dialog

    page.on("dialog", dismiss)
    yield visitor
    context.close()
