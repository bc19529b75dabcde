"""Checks SQL statements: one to a file, explained, with named parameters, writing only its own app's tables."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import sqlglot
from django.apps import apps
from sqlglot import exp

from tests.house.sources import ROOT, Source, at_or_below, labels

PARAMETER = re.compile(r"%\(([a-z_]+)\)[sb]")
COMMENT = re.compile(r"(?:--.*\n)+")
# PostgreSQL's own catalog, and the sequences, which are read like tables of one row.
CATALOG = "pg_"
SEQUENCES = {"commit_log_offset": "store", "operation_id": "transactions"}
# A plan is asked for in front of the statement it is about.
PLANNED = re.compile(r"\s*EXPLAIN \([A-Z ,]+\)")
SETTING = re.compile(r"\s*SET\s", re.IGNORECASE)


@cache
def owners() -> dict[str, str]:
    """The app that owns each table and alone may write it, by its model or by name; and of each view."""
    models, ours = apps.get_models(include_auto_created=True), set(labels().values())
    tables = {model._meta.db_table: model._meta.app_label for model in models if model._meta.app_label in ours}
    configs = apps.get_app_configs()
    named = ((one.label, getattr(one.models_module, kind, ())) for one in configs for kind in ("VIEWS", "IN_SOURCES"))
    return tables | {name: app for app, names in named for name in names}


def breaches(source: Source) -> list[str]:
    """What is wrong with the file of a statement; nothing for one that keeps to the house's rules."""
    bare = COMMENT.sub("", source.text)
    found = [*_of_comment(source.text), *_of_parameters(bare), *_of_number(bare)]
    try:
        statement = parsed_of(source)
    except sqlglot.ParseError as problem:
        return [*found, f"is not understood: {problem.errors[0]['description']}"]
    return [*found, *(_of_tables(source.app, statement) if statement else ())]


@cache
def parsed_of(source: Source) -> exp.Expr | None:
    """The structure of a statement, not to be changed; None for a setting. Raises ParseError."""
    bare = PLANNED.sub("", COMMENT.sub("", source.text))
    return None if SETTING.match(bare) else sqlglot.parse_one(PARAMETER.sub(r":\1", bare), dialect="postgres")


def _of_comment(text: str) -> Iterator[str]:
    opening = COMMENT.match(text)
    if not opening or not re.fullmatch(r"-- [A-Z].*\.", " ".join(opening[0].split())):
        yield "does not open with a sentence that says what it does and why it is safe"


def _of_parameters(bare: str) -> Iterator[str]:
    if "%" in PARAMETER.sub("", bare).replace("%%", ""):
        yield "has a parameter without a name: write %(name)s or %(name)b"
    if re.search(r"\$\d", bare):
        yield "has a numbered parameter: write %(name)s or %(name)b"


def _of_number(bare: str) -> Iterator[str]:
    if bare.rstrip().endswith(";"):
        yield "ends with a semicolon"
    statements = [part for part in bare.rstrip().rstrip(";").split(";") if part.strip()]
    # Spark begins a session with one text, which may hold several of its settings.
    if len(statements) != 1 and not all(map(SETTING.match, statements)):
        yield f"holds {len(statements)} statements"


def _of_tables(app: str, statement: exp.Expr) -> Iterator[str]:
    for table in sorted(written(statement)):
        if (owner := owners().get(table, "no app")) != app:
            yield f"writes {table}, a table of {owner}"
    for table in sorted(read(statement) - written(statement)):
        owner = (owners() | SEQUENCES).get(table, "no app")
        if table.startswith(CATALOG):
            continue
        if owner not in at_or_below(app):
            yield f"reads {table}, a table of {owner}, which is not below"


def written(statement: exp.Expr) -> set[str]:
    """The tables that a statement inserts into, updates or deletes from, also within its WITH."""
    writers = statement.find_all(exp.Insert, exp.Update, exp.Delete, exp.Merge)
    return {table.name for writer in writers if (table := writer.this.find(exp.Table))}


def read(statement: exp.Expr) -> set[str]:
    """The tables that a statement names, without its common tables, functions and the aliases it locks."""
    common = {part.alias for part in statement.find_all(exp.CTE)}
    locks = {table.name for lock in statement.find_all(exp.Lock) for table in lock.find_all(exp.Table)}
    named = {table.name for table in statement.find_all(exp.Table)}
    return {name for name in named - common - locks if name}


def uses(module: Source) -> Iterator[Path]:
    """The `.sql` files that a module's `Statement(__file__, "name")` calls name."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Statement":
            beside, name, *_ = node.args
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield _folder(module, beside) / "sql" / f"{name.value}.sql"


def _folder(module: Source, beside: ast.expr) -> Path:
    if isinstance(beside, ast.Attribute) and isinstance(beside.value, ast.Name):
        return _imported(module.tree, beside.value.id)
    return _with_statements(module.path)


def _with_statements(path: Path) -> Path:
    """The nearest folder above that holds statements, as `Statement` looks for it."""
    return next((folder for folder in path.parents if (ROOT / folder / "sql").is_dir()), path.parent)


def _imported(tree: ast.Module, name: str) -> Path:
    """The folder of a module that was imported as `from app import name`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and name in (alias.name for alias in node.names):
            return _with_statements(Path(*node.module.split("."), name))
    raise LookupError(f"{name} is not imported")


def hidden(module: Source) -> Iterator[str]:
    """Statements that stand in Python, where no one holds them to the rules."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if re.match(r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH) [a-z_*]", text):
                yield f"{module}:{node.lineno} holds SQL: {text.split()[:4]}"
