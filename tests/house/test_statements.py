"""Holds every SQL statement to the house's rules, and the checker to finding what breaks them."""

from collections import Counter
from pathlib import Path

import pytest

from tests.house.sources import APPS, Source, modules, sources
from tests.house.statements import breaches, hidden, uses

STATEMENTS = sources("*.sql", *APPS)
GOOD = """\
-- Note checks that decided nothing. Rows are locked in id order.
UPDATE half_message SET last_failure = %(reason)s WHERE transaction_id = any(%(ids)b::uuid [])
"""


@pytest.mark.parametrize("statement", STATEMENTS, ids=str)
def test_a_statement_is_one_is_explained_and_writes_only_its_own_tables(statement: Source) -> None:
    assert breaches(statement) == []


def test_every_statement_is_used_in_exactly_one_place() -> None:
    used = Counter(path for module in modules(*APPS) for path in uses(module))

    assert used == dict.fromkeys((statement.path for statement in STATEMENTS), 1)


def test_no_module_holds_a_statement_of_its_own() -> None:
    assert [found for module in modules(*APPS) for found in hidden(module)] == []


def test_the_checker_accepts_a_good_statement() -> None:
    assert judged(GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "breach"),
    [
        (
            "-- Note checks that decided nothing. Rows are locked in id order.\n",
            "",
            "does not open with a sentence that says what it does and why it is safe",
        ),
        ("id order.", "id order", "does not open with a sentence that says what it does and why it is safe"),
        ("%(reason)s", "%s", "has a parameter without a name: write %(name)s or %(name)b"),
        ("%(reason)s", "$1", "has a numbered parameter: write %(name)s or %(name)b"),
        ("[])\n", "[]);\n", "ends with a semicolon"),
        ("[])\n", "[]); DELETE FROM half_message\n", "holds 2 statements"),
        ("= any(", "= any((", "is not understood: Expecting )"),
        ("UPDATE half_message", "UPDATE commit_log", "writes commit_log, a table of store"),
        ("UPDATE half_message", "UPDATE halfmessage", "writes halfmessage, a table of nobody"),
        (
            "UPDATE",
            "WITH gone AS (DELETE FROM receipt RETURNING queue_id) UPDATE",
            "writes receipt, a table of delivery",
        ),
        (
            "any(%(ids)b::uuid [])",
            "any(SELECT queue_id FROM receipt)",
            "reads receipt, a table of delivery, which is not below",
        ),
        ("any(%(ids)b::uuid [])", "any(SELECT id FROM orders)", "reads orders, a table of nobody, which is not below"),
    ],
)
def test_the_checker_catches_a_statement_that_breaks_a_rule(old: str, new: str, breach: str) -> None:
    assert old in GOOD

    assert breach in judged(GOOD.replace(old, new))


def test_the_checker_catches_sql_inside_of_a_module() -> None:
    module = Source(Path("store/log.py"), 'rows = read("SELECT id FROM topic")')

    assert list(hidden(module)) == ["store/log.py:1 holds SQL: ['SELECT', 'id', 'FROM', 'topic']"]


def judged(text: str) -> list[str]:
    return breaches(Source(Path("transactions/sql/note.sql"), text))
