"""What the pages name is there: files, functions, commands, settings, metrics, calls, and each other."""

import importlib
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pytest

from console.monitoring import metrics, requests, scrape
from mqbroker.embedded.cli.__main__ import COMMANDS, TOOLS
from mqbroker.embedded.commands import ROOT
from mqbroker.environment import env
from tests.broker.running import RunningBroker
from tests.docs.pages import Page, all_pages
from tests.house.sources import APPS

PAGES = all_pages()
# Read from the environment, and no settings of the broker's processes.
OTHER_VARIABLES = {"MQBROKER_DATA_DIR", "MQBROKER_URL", "MQBROKER_API_KEY", "MQBROKER_NAMESPACE"}
# What a reader makes by following a page.
MADE = {
    "shop/settings.py",
    "shop/urls.py",
    "orders/models.py",
    "orders/views.py",
    "orders/tests.py",
    "orders/handlers.py",
    "orders/tasks.py",
    "relay.toml",
    "shop/__init__.py",
    "shop/celery.py",
    ".mqbroker/secrets/api-key",
    "first.py",
    "shop.py",
    "fair.py",
    "test_shop.py",
    "poll.py",
    "tasks.py",
    "consume.py",
    "conftest.py",
    "register.py",
    "checks.py",
    "watched.py",
    "app.py",
    "outbox.sql",
    "urls.py",
    "views.py",
    "settings.py",
    "tests/store/test_content_types.py",
    ".venv/bin/pre-commit",
}

DECISIONS = ROOT / "docs" / "decisions"
# A longer page explains how the code works, which belongs to docs/writing.md or to the code.
MOST_WORDS_OF_A_DECISION = 300

PATH = re.compile(r"\.?[\w-]+(/[\w.-]+)+/?|[\w-]+\.(py|md|toml|ya?ml|sql|lock)")
FUNCTION = re.compile(rf"({'|'.join(APPS)})(\.\w+)+")
CALL = re.compile(r"/(v1/[\w/{}-]*\w\}?|healthz|readyz|metrics|docs)")


def functions(page: Page) -> list[str]:
    """The dotted names of our own that the page names."""
    return [name for name in page.names if FUNCTION.fullmatch(name) and not (ROOT / name).exists()]


def paths(page: Page) -> list[str]:
    """The files and folders that the page names."""
    return [name for name in page.names if PATH.fullmatch(name) and name not in MADE]


def breaches(lost: Callable[[Page], Collection[str]]) -> dict[str, Collection[str]]:
    """What the pages name that is lost, by page."""
    return {str(page): found for page in PAGES if (found := lost(page))}


def test_every_link_leads_somewhere() -> None:
    assert breaches(lambda page: [link for link in page.links if not leads_somewhere(page, link)]) == {}


def leads_somewhere(page: Page, link: str) -> bool:
    """Whether a link's place is there, with the part of it that is named; one to another site is believed."""
    target, _, anchor = link.partition("#")
    if re.match(r"https?://", link):
        return True
    place = (page.path.parent / target).resolve() if target else page.path
    return place.exists() and (not anchor or anchor in Page(place, place.read_text()).anchors)


def test_every_file_is_there() -> None:
    def lost(page: Page) -> list[str]:
        places = (ROOT, page.path.parent, ROOT / "client")
        return [name for name in paths(page) if not any((place / name).exists() for place in places)]

    assert breaches(lost) == {}


def test_every_function_is_there() -> None:
    assert breaches(lambda page: [name for name in functions(page) if not is_there(name)]) == {}


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something that a module has."""
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), attribute) or bool(importlib.import_module(name))
    except ModuleNotFoundError:
        return False


def test_every_command_is_one_of_mq() -> None:
    assert (
        breaches(lambda page: set(re.findall(r"\./mq +([a-z]\w*)", page.text)) - set(COMMANDS | TOOLS) - {"alone"})
        == {}
    )


def test_every_setting_is_declared() -> None:
    declared = {setting.name for setting in env.declared} | OTHER_VARIABLES

    assert breaches(lambda page: set(re.findall(r"\bMQBROKER_\w+", page.text)) - declared) == {}


def test_every_metric_is_declared() -> None:
    declared = {metric.name for metric in (*metrics.METRICS, scrape.CELL_UP, requests.SECONDS)}
    # Not packages, and not the tables of tasks, nor the tables and functions of an outbox.
    metric = re.compile(
        r"mqbroker_(?!client|barrier|command|task$|outbox(_refused|_state|_slot|_number|_wake|_clear|_lock|_seq)?$)\w+"
    )

    assert breaches(lambda page: set(filter(metric.fullmatch, page.names)) - declared) == {}
    named = {name for page in PAGES for name in page.names}
    assert declared - named == set()


def test_every_call_is_documented(broker: RunningBroker) -> None:
    schema = broker.wire().get("/v1/schema?format=json").document
    documented = {shape(path) for path in schema["paths"]} | {"/docs", "/v1/schema"}

    named = {(str(page), name) for page in PAGES for name in calls(page)}
    assert {(page, name) for page, name in named if shape(name) not in documented} == set()


def calls(page: Page) -> list[str]:
    """The paths of the API that the page names."""
    words = [word for name in page.names for word in name.split()]
    return [word for word in words if CALL.fullmatch(word)]


def shape(path: str) -> str:
    """A path without the names of its parameters."""
    return re.sub(r"\{\w+\}", "{}", path)


def test_each_decision_has_a_number_of_its_own_and_says_context_choice_and_price() -> None:
    decisions = [page for page in PAGES if page.path.parent == DECISIONS]

    numbers = [page.path.name[:4] for page in decisions]
    assert len(set(numbers)) == len(numbers)
    architecture = next(page for page in PAGES if page.path.name == "architecture.md")
    assert [page.path.name for page in decisions] == [
        Path(link).name for link in architecture.section("Decisions").links
    ]
    for page in decisions:
        assert re.findall(r"^## (\w+)", page.text, re.MULTILINE)[:3] == ["Context", "Choice", "Price"], page
        assert page.text.startswith(f"# {page.path.name[:4]} ")


def test_no_decision_page_has_more_than_300_words() -> None:
    assert too_long(PAGES) == {}


def test_a_decision_page_of_301_words_is_found() -> None:
    pages = [Page(DECISIONS / f"{count}.md", "word " * count) for count in (300, 301)]

    assert too_long([*pages, Page(ROOT / "README.md", "word " * 301)]) == {"301.md": 301}


def too_long(pages: Sequence[Page]) -> dict[str, int]:
    """The decision pages with too many words: the name of each page, and its number of words."""
    words = {page.path.name: len(page.text.split()) for page in pages if page.path.parent == DECISIONS}
    return {name: count for name, count in words.items() if count > MOST_WORDS_OF_A_DECISION}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`store/nothing.py`", ["store/nothing.py"]),
        ("`nothing.md`", ["nothing.md"]),
        ("`store.nothing.at_all`", ["store.nothing.at_all"]),
        ("`store.segments.log.append` and `store/segments/log.py`, `README.md`", []),
        ("`POST /v1/messages`, `true` and `docker compose up`", []),
    ],
)
def test_the_checker_sees_what_is_not_there(text: str, found: list[str]) -> None:
    page = Page(ROOT / "README.md", text)

    missing = [name for name in paths(page) if not (ROOT / name).exists()]
    assert missing + [name for name in functions(page) if not is_there(name)] == found
