"""Each part of the product keeps to its budget of lines; the page on architecture and the tool name the same core."""

import re

import pytest

from tests.docs.pages import page
from tools.house import budgets, figures
from tools.house.budgets import BUDGETS, CORE, Budget


@pytest.mark.parametrize("name", BUDGETS)
def test_a_part_keeps_to_its_budget(name: str) -> None:
    assert budgets.lines(BUDGETS[name]) <= BUDGETS[name].lines


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_is_lowered_when_its_part_has_shrunk(name: str) -> None:
    """Room for a fifth: a part at its limit is a fault of the limit, a far one hides what grows."""
    assert budgets.lines(BUDGETS[name]) >= BUDGETS[name].lines * 0.8


def test_every_file_of_the_product_belongs_to_one_part() -> None:
    parts = {
        part.name: [name for name, budget in BUDGETS.items() if budgets.belongs(part.name, budget)]
        for part in figures.written(*figures.PRODUCT)
        if part.name.count("/") > 1 or not part.name.startswith(("client/", "tools/"))
    }

    assert {path: names for path, names in parts.items() if len(names) != 1} == {
        "client/mqbroker_client/__init__.py": []
    }


def test_what_lies_within_another_part_counts_there_alone() -> None:
    budget = Budget(("a", "a/b/c"), ("a/b",), 1)

    assert [budgets.belongs(path, budget) for path in ("a/x.py", "a/b/x.py", "a/b/c/x.py", "ab/x.py")] == [
        True,
        False,
        True,
        False,
    ]


def test_the_page_on_architecture_lists_the_core() -> None:
    section = page("docs/architecture.md").section("The core")

    assert [name.rstrip("/") for name in re.findall(r"`([\w/.]+)`", section.text)] == list(CORE)
