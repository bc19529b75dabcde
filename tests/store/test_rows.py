"""Holds the type of every statement's row to what PostgreSQL says that the statement returns."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import psycopg
import pytest
from django.apps import apps

from store.db.statements import NoRow, Statement
from tests.broker import databases
from tests.house.sources import ROOT, labels, modules
from tools.generate import rows
from tools.generate.rows import described

APPS = ("store", "scheduling", "transactions", "delivery", "mqbroker")
# A plan has one column, whose name no field can have.
EXPLAINS = "EXPLAIN"


def statements() -> Iterator[Statement[Any]]:
    """Every statement of the apps, each once."""
    for module in modules(*APPS):
        # The statements of outboxes are for the databases of producers.
        if not {"management", "celery", "outboxes"}.intersection(module.path.parts):
            found = vars(importlib.import_module(".".join(module.path.with_suffix("").parts)))
            yield from (value for value in found.values() if isinstance(value, Statement))


@pytest.fixture(scope="module")
def reader(prepared: str) -> Iterator[psycopg.Connection[Any]]:
    """A session in a database of the broker."""
    with databases.copied(prepared) as database_url, psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


def test_a_statement_returns_the_row_that_it_is_typed_by(reader: psycopg.Connection[Any]) -> None:
    found = {id(statement): statement for statement in statements() if EXPLAINS not in statement.text}

    wrong = [breach for statement in found.values() for breach in breaches_of(reader, statement)]

    assert len(found) > 100
    assert wrong == []


def test_a_column_that_a_later_version_adds_to_any_table_changes_the_row_of_no_statement(
    reader: psycopg.Connection[Any],
) -> None:
    found = {each.text: each for each in statements() if EXPLAINS not in each.text}
    before = {text: described(reader, text) for text in found}
    tables = [model._meta.db_table for model in apps.get_models() if model._meta.app_label in labels().values()]

    with reader.transaction(force_rollback=True):
        for table in tables:
            reader.execute(f'ALTER TABLE "{table}" ADD COLUMN added_later text')
        changed = [found[text].name for text, columns in before.items() if described(reader, text) != columns]

    assert len(tables) > 30
    assert changed == []


def test_the_checker_catches_another_name_and_another_type(reader: psycopg.Connection[Any]) -> None:
    from store.naming.topics import TopicFacts

    good = "SELECT id, name, queues, permission, cell_id, version, sends_from FROM topic CROSS JOIN cell_map"
    assert list(breaches(reader, good, TopicFacts)) == []
    assert list(breaches(reader, good.replace("queues", "queues AS lanes"), TopicFacts)) != []
    assert list(breaches(reader, good.replace("queues", "queues::text AS queues"), TopicFacts)) != []
    assert list(breaches(reader, good.replace(", permission", ""), TopicFacts)) != []
    assert list(breaches(reader, good, NoRow)) != []


def test_the_generated_types_are_the_rows_that_postgresql_describes(reader: psycopg.Connection[Any]) -> None:
    found = rows.generated(reader)

    differing = [path for path, text in found.items() if (ROOT / path).read_text(encoding="utf-8") != text]

    assert Path("store/rows.py") in found
    assert differing == [], "run python -m tools.generate.rows"


def test_a_generated_type_follows_the_type_of_a_column(reader: psycopg.Connection[Any]) -> None:
    with reader.transaction(force_rollback=True):
        reader.execute("ALTER TABLE namespace ALTER COLUMN max_topics TYPE text")
        changed = rows.generated(reader)[Path("store/rows.py")]

    assert "    max_topics: str | None\n" in changed
    assert changed.replace("max_topics: str", "max_topics: int") == (ROOT / "store/rows.py").read_text(encoding="utf-8")


def breaches_of(reader: psycopg.Connection[Any], statement: Statement[Any]) -> Iterator[str]:
    """Where the columns of a statement differ from the row, or the value, that it declares."""
    if statement.one is None:
        yield from breaches(reader, statement.text, statement.row)
        return
    types = [type_ for _, type_ in described(reader, statement.text)]
    if len(types) != 1 or types[0] not in ("Any", *accepted(statement.one)):
        yield f"{statement.name} has one {statement.one}, its columns are {types}"


def breaches(reader: psycopg.Connection[Any], text: str, row: type[Any]) -> Iterator[str]:
    """Where the columns of a statement differ from the fields of its row."""
    fields = {name: accepted(hint) for name, hint in get_type_hints(row).items()}
    columns = [column for column in described(reader, text) if row is not NoRow or column[1] != "None"]
    if [name for name, _ in columns] != list(fields):
        yield f"{row.__name__} has {list(fields)}, its statement {[name for name, _ in columns]}"
        return
    for name, type_ in columns:
        # What a JSON column holds its owner knows.
        if type_ not in ("Any", *fields[name]) and "Any" not in fields[name]:
            yield f"{row.__name__}.{name} is {fields[name]}, its column {type_}"


def accepted(hint: Any) -> set[str]:
    """The names of the types that a field takes, without None beside another."""
    names = {_named(part) for part in (get_args(hint) if _is_union(hint) else (hint,))}
    return names - {"None"} or names


def _is_union(hint: Any) -> bool:
    return type(hint).__name__ in ("UnionType", "_UnionGenericAlias")


def _named(hint: Any) -> str:
    if hint is type(None):
        return "None"
    if get_origin(hint) is Literal:
        return type(get_args(hint)[0]).__name__
    if get_origin(hint) is list:
        [element] = accepted(get_args(hint)[0])
        return f"list[{element}]"
    return getattr(hint, "__name__", str(hint))
