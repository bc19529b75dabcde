"""The demo of docs/demo: `MQ_DEMO=docs/demo ./mq test tests/console/test_console_demo.py` records it again.

Without the variable it is recorded into a folder of the test.
"""

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from mqbroker.embedded.commands import ROOT
from tests.broker.browser import come_in
from tests.console import demo
from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_browser import chromium
from tests.console.test_console_screenshots import story

__all__ = ["chromium"]

KEPT = ROOT / "docs" / "demo"
MOST_BYTES = 600_000
PLACE = re.compile(rf"127\.0\.0\.1|localhost|/tmp/|/home/|/work/|\b{re.escape(socket.gethostname())}\b")
# The pictures of charts.
DATA = re.compile(r'"data:[^"]*"')

# Not the properties of these names: a form may have a field called `action`.
ADDRESSES = 'all => all.map(one => new URL(one.getAttribute(one.tagName === "A" ? "href" : "action"), location).href)'


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A desktop's screen, whose time is that of the broker."""
    context = chromium.new_context(
        viewport={"width": 1360, "height": 850}, color_scheme="light", locale="en-US", timezone_id="UTC"
    )
    yield context.new_page()
    context.close()


@pytest.fixture
def recorded(broker: Broker, ada: Operator, console: str, page: Page, tmp_path: Path) -> Path:
    """The folder of a new recording."""
    named = story(broker)
    folder = ROOT / (os.environ.get("MQ_DEMO") or tmp_path)
    come_in(page, ada)
    paths = {
        "index.html": "",
        "topics.html": "topics/",
        "topic.html": "topics/orders/",
        "halves.html": "transactions/pending/",
        "discarded.html": "transactions/discarded/",
        "transaction.html": f"transactions/{named['transaction']}/",
        "message.html": f"messages/{named['message']}/",
        "producers.html": "producer-groups/",
        "producer.html": "producer-groups/bank/",
        "groups.html": "consumer-groups/",
        "group.html": "consumer-groups/mail/",
        "dead-letters.html": "dead-letters/mail/",
        "subscriptions.html": "subscriptions/",
    }
    demo.record(page, console, paths, broker.now, folder)
    return folder


def test_a_recording_of_a_busy_hour_is_shown_from_files_alone(recorded: Path, page: Page) -> None:
    shows_itself(recorded, page)


def test_the_demo_is_shown_from_files_alone(page: Page) -> None:
    shows_itself(KEPT, page)


def shows_itself(folder: Path, page: Page) -> None:
    """Holds that a browser shows each page without a complaint and asks for nothing outside of the folder."""
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("requestfailed", lambda request: complaints.append(request.url))
    files = sorted(folder.glob("*.html"))
    for file in files:
        page.goto(file.as_uri())
        assert page.locator("h1, h2").first.is_visible(), file.name
        links = page.eval_on_selector_all("a[href], form[action]", ADDRESSES)
        assert {link.partition("#")[0].partition("?")[0] for link in links} <= {one.as_uri() for one in files}
        assert PLACE.search(DATA.sub("", file.read_text())) is None

    assert complaints == []
    assert [address for address in asked if not address.startswith(f"{folder.as_uri()}/")] == []
    assert len(files) >= 10
    assert sum(one.stat().st_size for one in folder.iterdir()) <= MOST_BYTES
