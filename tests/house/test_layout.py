"""Holds the tree to the house's layout: what modules are called, how long they are, what they say of themselves."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.house.sources import APPS, OURS, Source, modules

MODULES = modules(*OURS)
# Past this a file of tests is hard to read as a whole; test_lengths.py holds the product to less.
LONGEST_MODULE = 320
# Past this a module's name has to be looked for; an app with more has folders.
MOST_AT_THE_TOP = 16
# Modules and folders whose names Django gives.
OF_DJANGO = {"apps", "migrations", "management", "templatetags"}
# Django looks for the module `base` of an engine.
ENGINE = "backend"
# Names that say nothing of what is inside.
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "services", "managers", "common", "misc", "base"}
# A silenced rule is followed by its reason.
SILENCED = re.compile(
    r"# ?(noqa|type: ?ignore)(?P<rule>: ?[A-Z]+\d+(?:, ?[A-Z]+\d+)*|\[[\w, -]+\])?(?P<reason>\s+\S.*)?"
)
UNFINISHED = re.compile(r"\b(TODO|FIXME|HACK)\b")
STANDS_IN = {"mock", "unittest.mock", "pytest_mock", "responses", "aioresponses", "freezegun", "time_machine"}
# To parse all modules takes eight seconds of CPU: a module is parsed only if its text leaves a question.
BEGINS_WITH_DOCSTRING = re.compile(r'"""[^"]')
NAMES_A_STAND_IN = re.compile(rf"\b(?:{'|'.join(STANDS_IN)})\b")


def test_every_module_keeps_to_the_layout() -> None:
    assert [f"{module} {breach}" for module in MODULES for breach in breaches(module)] == []


@pytest.mark.parametrize(
    ("path", "text", "breach"),
    [
        ("store/log.py", "import os\n", "does not say what it is for"),
        ("store/utils.py", '"""Things."""\n', "has a name that says nothing"),
        ("tests/store/test_log.py", '"""The log."""\n' + "x = 1\n" * 400, "has 401 lines"),
        ("store/log.py", '"""The log."""\nx = 1  # TODO\n', "line 2 is unfinished"),
        ("store/log.py", '"""The log."""\nx = 1  # type: ignore[misc]\n', "line 2 silences a rule without its reason"),
        ("store/log.py", '"""The log."""\nx = 1  # noqa\n', "line 2 silences a rule without its reason"),
        ("store/log.py", '"""The log."""\nx = 1  # noqa: E402\n', "line 2 silences a rule without its reason"),
        (
            "tests/store/test_x.py",
            '"""Tests."""\nfrom unittest import mock\n',
            "line 2 imports what stands in for something",
        ),
        (
            "tests/store/test_x.py",
            '"""Tests."""\nimport unittest.mock\n',
            "line 2 imports what stands in for something",
        ),
    ],
)  # fmt: skip -- one case to a line
def test_the_checker_catches_a_module_that_breaks_the_layout(path: str, text: str, breach: str) -> None:
    assert breaches(Source(Path(path), text)) == [breach]


def test_no_app_shows_more_than_sixteen_modules_and_folders_at_its_top() -> None:
    shown = {app: len(at_the_top(app, MODULES)) for app in APPS}

    assert {app: count for app, count in shown.items() if count > MOST_AT_THE_TOP} == {}
    assert shown["store"] > 10


def test_a_folder_counts_once_however_much_is_in_it() -> None:
    paths = (
        "store/__init__.py",
        "store/log.py",
        "store/db/a.py",
        "store/db/b.py",
        "store/migrations/0001.py",
        "mq/x.py",
    )

    assert at_the_top("store", [Source(Path(path), "") for path in paths]) == {"log", "db"}


def at_the_top(app: str, found: Iterable[Source]) -> set[str]:
    """The modules and folders that an app shows, without those of Django."""
    parts = [Path(*module.path.parts[1:]) for module in found if module.room == app]
    return {part.parts[0].removesuffix(".py") for part in parts} - {"__init__"} - OF_DJANGO


def breaches(module: Source) -> list[str]:
    """What is wrong with a module's layout."""
    found = [] if says_what_it_is_for(module) else ["does not say what it is for"]
    if module.path.stem in EMPTY_NAMES and module.path.parent.name != ENGINE:
        found.append("has a name that says nothing")
    lines = module.text.splitlines()
    if module.room == "tests" and len(lines) > LONGEST_MODULE:
        found.append(f"has {len(lines)} lines")
    excused: str | None = None
    # This file holds what it looks for.
    for number, line in enumerate(lines if module.path.name != Path(__file__).name else (), 1):
        if UNFINISHED.search(line):
            found.append(f"line {number} is unfinished")
        silenced = SILENCED.search(line)
        # Neighbours that silence the same rule share the reason of the first.
        if silenced and not silenced["reason"] and excused != (silenced["rule"] or "every"):
            found.append(f"line {number} silences a rule without its reason")
        excused = (silenced["rule"] or "every") if silenced else None
    return found + [f"line {number} imports what stands in for something" for number in _stand_ins(module)]


def says_what_it_is_for(module: Source) -> bool:
    """Whether a module has a docstring, or nothing at all."""
    return bool(BEGINS_WITH_DOCSTRING.match(module.text) or not module.text.strip() or ast.get_docstring(module.tree))


def _stand_ins(module: Source) -> list[int]:
    if not NAMES_A_STAND_IN.search(module.text):
        return []
    found = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import) and STANDS_IN.intersection(alias.name for alias in node.names):
            found.append(node.lineno)
        elif isinstance(node, ast.ImportFrom):
            names = {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
            found += [node.lineno] if STANDS_IN & names else []
    return found
