"""The page for RocketMQ's users: each line of its tables has a test that fails without what the line claims.

`rocketmq_lines` names the test of each line. Faults that are planted one by one show that the named tests catch them:
`rocketmq_faults` has them, at least one for ten lines.
"""

import ast
import math
import re
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT
from mqbroker.environment import env
from tests.docs.rocketmq_faults import FAULTS, Fault, is_caught
from tests.docs.rocketmq_lines import LINES
from tools.mutants import copied

PAGE = (ROOT / "docs" / "from-rocketmq.md").read_text(encoding="utf-8")
HEADS = ("RocketMQ", "broker.conf", "mqadmin")
# The defaults that the page has, as the settings have them.
DEFAULTS = {
    "MQBROKER_TRANSACTION_TIMEOUT_SECONDS": ("6 s", "6"),
    "MQBROKER_TRANSACTION_CHECK_INTERVAL_SECONDS": ("30 s", "30"),
    "MQBROKER_TRANSACTION_CHECK_MAX": ("15", "15"),
    "MQBROKER_REJECT_TRANSACTION_MESSAGE": ("off", "false"),
    "MQBROKER_MAX_TIMER_DELAY_SECONDS": ("40 days here", "3456000"),
    "MQBROKER_RESERVED_HOURS": ("72 h", "72"),
    "MQBROKER_MAX_MESSAGE_BYTES": ("4 MiB", "4194304"),
    "MQBROKER_AUTO_CREATE_TOPICS": ("off in this broker; 4 in this broker", "false"),
    "MQBROKER_DEFAULT_QUEUES": ("off in this broker; 4 in this broker", "4"),
    "MQBROKER_MAX_RECONSUME_TIMES": ("", "16"),
}


def rows() -> list[str]:
    """The lines of the page's tables."""
    lines = [line for line in PAGE.splitlines() if line.startswith("|") and "---" not in line]
    return [line for line in lines if line.split("|")[1].strip() not in HEADS]


def lines_of(name: str) -> list[str]:
    """The lines that begin with these words, and with those of no longer name."""
    starting = [line for line in rows() if re.sub(r"^\| `?", "", line).startswith(name)]
    longer = [other for other in LINES if other != name and other.startswith(name)]
    return [line for line in starting if not any(line in lines_of(other) for other in longer)]


def source_of(path: str, function: str) -> str:
    """A test, with all that it names of its own file: helpers, fixtures and tables."""
    text = (ROOT / "tests" / path).read_text(encoding="utf-8")
    defined: dict[str, ast.stmt] = {}
    for node in ast.parse(text).body:
        for name in names_of(node):
            defined[name] = node
    assert function in defined, f"there is no {function} in tests/{path}"
    wanted, found = [function], dict[str, str]()
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = "\n".join(text.splitlines()[first_line(defined[name]) - 1 : defined[name].end_lineno])
            wanted += {word for word in re.findall(r"\w+", found[name]) if word in defined}
    return "\n".join(found.values())


def names_of(node: ast.stmt) -> list[str]:
    """What a statement of a module defines."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign():
            return [target.id for target in node.targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def first_line(node: ast.stmt) -> int:
    """The line where a definition begins, its decorators among it."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def test_each_line_of_the_tables_has_one_test_and_each_test_is_of_one_line() -> None:
    named = [line for name in LINES for line in lines_of(name)]

    assert {name: len(lines_of(name)) for name in LINES} == dict.fromkeys(LINES, 1)
    assert sorted(named) == sorted(rows())


@pytest.mark.parametrize("name", LINES)
def test_the_test_of_a_line_is_there_and_has_to_do_with_it(name: str) -> None:
    test, words = LINES[name]
    path, _, function = test.partition("::")

    assert function.startswith("test_")
    assert words in source_of(path, function)


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_on_the_page_is_that_of_the_setting(name: str) -> None:
    shown, expected = DEFAULTS[name]
    [row] = [line for line in rows() if f"`{name}`" in line]
    [setting] = [one for one in env.declared if one.name == name]

    assert row.rstrip("| ").endswith(shown) or not shown
    assert setting.default == expected


def test_a_fault_is_planted_for_each_ten_lines_at_least_and_each_is_of_a_named_test() -> None:
    assert len({fault.line for fault in FAULTS}) >= math.ceil(len(rows()) / 10)
    for fault in FAULTS:
        assert fault.line in LINES
        assert Path(ROOT, fault.path).read_text(encoding="utf-8").count(fault.old) == 1, fault


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.line)
def test_the_test_of_a_line_catches_a_fault_of_what_the_line_claims(fault: Fault) -> None:
    test, _ = LINES[fault.line]
    with copied() as copy:
        assert is_caught(fault, test, copy)
