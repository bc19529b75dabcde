"""The figures of the front page are those of the pages that it links, and the table of sizes follows from them."""

import re

import pytest

from mqbroker.embedded.commands import ROOT
from tests.docs.pages import LINK, Page, page
from tests.simulated.loop.scenarios import SCENARIOS
from tests.simulated.models.__main__ import HOLDING, TWINS

FIGURE = re.compile(r"\d[\d,.]*\d|\d")
README = page("README.md")
SIZING = page("docs/sizing.md")
PERFORMANCE = page("docs/performance.md")
# What stays of a transaction until retention drops it.
STAYING = ("message", "operation", "entry")


def figures(text: str) -> set[str]:
    """The numbers of a text, without those of links and commands."""
    return set(FIGURE.findall(re.sub(r"\]\([^)]*\)|`[^`]*`", "", text)))


def linked(lines: str, place: Page) -> str:
    """The text of the pages that some lines link."""
    targets = {found["target"].partition("#")[0] for found in LINK.finditer(lines)}
    return "".join((place.path.parent / target).read_text() for target in targets if target.endswith(".md"))


def proofs() -> list[str]:
    """The items of what the front page calls proof."""
    return README.section("Why trust it").text.split("\n- ")[1:]


def costs() -> list[str]:
    """The rows of what the broker costs."""
    return re.findall(r"^\| (?!cost)(\w.*) \|$", README.section("What it costs").text, re.MULTILINE)


@pytest.mark.parametrize("item", proofs())
def test_each_proof_has_its_command_and_its_figures_stand_on_the_linked_page(item: str) -> None:
    assert "`./mq " in item or "=1 ./mq " in item

    assert figures(item) - figures(linked(item, README)) == set()


@pytest.mark.parametrize("row", costs())
def test_each_cost_stands_on_a_linked_page(row: str) -> None:
    there = linked(row, README) + PERFORMANCE.text

    assert figures(row) - figures(there) == set()


def test_the_sizes_follow_from_the_figures() -> None:
    lone, many = (286, 338), (64, 63)
    assert {f"CPU {web} + {server} µs" in PERFORMANCE.text for web, server in (lone, many)} == {True}
    assert "2,361 bytes" in PERFORMANCE.text
    for row in re.findall(r"^\| (\d[\d,]*) \| (.*) \|$", SIZING.text, re.MULTILINE):
        rate = int(row[0].replace(",", ""))
        web, server = lone if rate <= 1000 else many
        cores = [f"{max(rate * each / 1e6, 0.01):.2f}" for each in (web, server)]
        written, kept = rate * 2361 * 86_400 / 1e9, rate * stored() * 84 * 3600 / 1e9
        assert row[1].split(" | ") == [*cores, f"{written:,.0f}", f"{kept:,.0f}"]


def stored() -> int:
    """The bytes of a transaction that stay: those of its message, its operation and its entry."""
    text = (ROOT / "tools" / "bench" / "RESULTS.md").read_text()
    rows = [re.search(rf"^\| {name}: .* \| ([\d,; ]+) \|$", text, re.MULTILINE) for name in STAYING]
    return sum(int(number.replace(",", "")) for row in rows if row for number in row[1].split(";"))


def test_the_bytes_that_stay_are_named() -> None:
    assert f"{stored():,} bytes" in SIZING.text


def test_the_page_on_proof_counts_the_models_their_twins_and_the_scenarios() -> None:
    text = page("docs/proof.md").text

    assert f"{len(HOLDING)} models" in text
    assert f"{len(TWINS)} twins" in text
    assert f"{len(SCENARIOS)} scenarios" in text
