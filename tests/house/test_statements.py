"""Holds every SQL statement to the house's rules, and the checker to finding what breaks them."""

from collections import Counter
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from mqbroker.management.commands.statements import every
from tests.house.sources import BROKER, ROOT, Source, modules, sources
from tests.house.statements import breaches, hidden, owners, parsed_of, read, uses, written

STATEMENTS = sources("*.sql", *BROKER)
GOOD = """\
-- Note checks that decided nothing. Rows are locked in id order.
UPDATE half_message SET last_failure = %(reason)s WHERE transaction_id = any(%(ids)b::uuid [])
"""


def test_every_statement_is_one_is_explained_and_writes_only_its_own_tables() -> None:
    assert [f"{statement} {breach}" for statement in STATEMENTS for breach in breaches(statement)] == []


def test_every_statement_is_used_in_exactly_one_place() -> None:
    used = Counter(path for module in modules(*BROKER) for path in uses(module))

    assert used == dict.fromkeys((statement.path for statement in STATEMENTS), 1)


def test_no_module_holds_a_statement_of_its_own() -> None:
    assert [found for module in modules(*BROKER) for found in hidden(module)] == []


def test_the_checker_accepts_a_good_statement() -> None:
    assert breaches_of(GOOD) == []


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
        ("UPDATE half_message", "UPDATE halfmessage", "writes halfmessage, a table of no app"),
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
        ("any(%(ids)b::uuid [])", "any(SELECT id FROM orders)", "reads orders, a table of no app, which is not below"),
    ],
)
def test_the_checker_catches_a_statement_that_breaks_a_rule(old: str, new: str, breach: str) -> None:
    assert old in GOOD

    assert breach in breaches_of(GOOD.replace(old, new))


def test_the_checker_catches_sql_inside_of_a_module() -> None:
    module = Source(Path("store/log.py"), 'rows = read("SELECT id FROM topic")')

    assert list(hidden(module)) == ["store/log.py:1 holds SQL: ['SELECT', 'id', 'FROM', 'topic']"]


def breaches_of(text: str) -> list[str]:
    return breaches(Source(Path("transactions/sql/note.sql"), text))


def test_every_statement_is_listed_with_the_tables_that_it_writes_and_reads() -> None:
    """`./mq manage statements` reads by pattern what a parser of SQL reads here."""
    listed = {f"{each.app}/{each.name}": (set(each.writes), set(each.reads)) for each in every()}

    parsed = {f"{each.app}/{each.path.stem}": tables_of(each) for each in STATEMENTS}
    assert listed == parsed


def test_the_list_groups_statements_by_table_and_says_what_each_is_for() -> None:
    out = StringIO()

    call_command("statements", stdout=out)

    lines = out.getvalue().splitlines()
    place = lines.index("    store/append_messages: writes commit_log")
    assert lines[place + 1].strip() == (ROOT / "store/sql/append_messages.sql").read_text().splitlines()[0][3:]
    assert next(line for line in reversed(lines[:place]) if not line.startswith(" ")) == "commit_log"
    assert sum(line.startswith("    ") and not line.startswith("     ") for line in lines) == len(STATEMENTS)


def tables_of(source: Source) -> tuple[set[str], set[str]]:
    """The tables that a statement writes, and those that it only reads."""
    statement = parsed_of(source)
    if statement is None:
        return set(), set()
    return written(statement) & owners().keys(), (read(statement) - written(statement)) & owners().keys()
