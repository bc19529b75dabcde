"""The page that shows the schema, in a real browser."""

import json
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.broker import browser
from tests.broker.running import RunningBroker
from tests.broker.wire import problem
from tests.control.operators import Operator


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def asked() -> list[str]:
    """The addresses that the browser has asked for."""
    return []


@pytest.fixture(scope="module")
def page(chromium: Browser, broker: RunningBroker, password: str, asked: list[str]) -> Page:
    """The page, opened by way of the console's login. A browser takes seconds of CPU to show it."""
    page = chromium.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{broker.url}/docs")
    assert urlsplit(page.url).path == "/console/login/"
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", password)
    page.click("[type=submit]")
    assert urlsplit(page.url).path == "/docs"
    return page


def test_a_browser_signs_in_and_sees_every_call_without_asking_anybody_else(
    broker: RunningBroker, operator: Operator, page: Page, asked: list[str]
) -> None:
    calls = [call for found in operator.reads("/v1/schema")["paths"].values() for call in found]

    page.get_by_placeholder("Filter by tag").fill("")
    expect(page.locator(".opblock")).to_have_count(len(calls))
    expect(page.get_by_text("Begin a transaction")).to_be_visible()
    page.get_by_placeholder("Filter by tag").fill("producer-groups")
    expect(page.get_by_text("Begin a transaction")).to_have_count(0)
    expect(page.get_by_role("link", name="The console")).to_have_attribute("href", "/console/")
    assert {urlsplit(url).netloc for url in asked if not url.startswith("data:")} == {urlsplit(broker.url).netloc}


def test_a_signed_in_operator_makes_a_topic_from_the_page(operator: Operator, page: Page, orders: str) -> None:
    page.get_by_placeholder("Filter by tag").fill("topics")
    call = page.locator("#operations-topics-put_topic")

    call.click()
    call.get_by_role("button", name="Try it out").click()
    call.get_by_placeholder("topic").fill(orders)
    call.get_by_role("textbox").last.fill('{"queues": 3}')
    call.get_by_role("button", name="Execute").click()

    expect(call.locator(".live-responses-table .response-col_status").last).to_contain_text("201")
    assert operator.reads(f"/v1/topics/{orders}")["queues"] == 3


def test_a_call_that_another_site_forged_is_refused(page: Page) -> None:
    answer = page.evaluate("""async () => (await fetch("/v1/topics/forged", {method: "PUT"})).json()""")

    assert answer == problem(403, "no_permission", "CSRF Failed: CSRF token missing.")


def test_a_program_with_a_key_gets_the_page(operator: Operator) -> None:
    answer = operator.page("/docs", accept="text/html")

    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/html")


def test_a_program_without_a_key_gets_a_problem(stranger: Operator) -> None:
    answer = stranger.page("/docs")

    assert (answer.status, json.loads(answer.text)["code"]) == (401, "unauthenticated")


def test_the_front_door_leads_to_the_console(stranger: Operator) -> None:
    answer = stranger.page("/")

    assert (answer.status, answer.headers["location"]) == (302, "/console/")
    assert re.fullmatch(r"/console/login/.*", stranger.page("/console/").headers["location"])
