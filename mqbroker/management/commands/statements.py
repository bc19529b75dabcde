"""`manage.py statements`: lists all SQL statements by table."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand

COMMENT = re.compile(r"--.*")
WRITES = re.compile(r"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO)\s+(?:ONLY\s+)?([a-z_]+)")
TABLE = r"[a-z_]+(?:\s+AS\s+[a-z_]+)?"
# Matches the names in a FROM clause. Functions and common table expressions match too, but no model has their names.
READS = re.compile(rf"\b(?:FROM|JOIN|USING)\s+(?:ONLY\s+)?({TABLE}(?:\s*,\s*{TABLE})*)")
NO_TABLE = "no table"


@dataclass(frozen=True)
class Described:
    """One `.sql` file: its app and name, the tables that it writes, the tables that it only reads,
    and its first line.
    """

    app: str
    name: str
    writes: tuple[str, ...]
    reads: tuple[str, ...]
    purpose: str

    @property
    def table(self) -> str:
        """The first table that the statement writes; if the statement writes no table, the first that it reads."""
        return next(iter((*self.writes, *self.reads)), NO_TABLE)


class Command(BaseCommand):
    """The command. It reads the `.sql` files, not the database."""

    help = "Lists every SQL statement by table: what it writes and reads, and the first line of its comment."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        for table, statements in groupby(every(), key=lambda each: each.table):
            self.stdout.write(table)
            for each in statements:
                also = [f"writes {name}" for name in each.writes] + [f"reads {name}" for name in each.reads]
                self.stdout.write(f"    {each.app}/{each.name}: {', '.join(also) or NO_TABLE}")
                self.stdout.write(f"        {each.purpose}")


def every() -> list[Described]:
    """Every statement of the broker's apps, by table, app and name."""
    files = [
        (config.label, path) for config in apps.get_app_configs() for path in (Path(config.path) / "sql").glob("*.sql")
    ]
    return sorted((described(*file) for file in files), key=lambda each: (each.table, each.app, each.name))


def described(app: str, path: Path) -> Described:
    """The description of a statement, from its file."""
    text = path.read_text(encoding="utf-8")
    bare, tables = COMMENT.sub("", text), known_tables()
    writes = tuple(dict.fromkeys(name for name in WRITES.findall(bare) if name in tables))
    reads = tuple(dict.fromkeys(name for name in named(bare) if name in tables and name not in writes))
    return Described(app, path.stem, writes, reads, text.partition("\n")[0].removeprefix("-- "))


def named(bare: str) -> Iterator[str]:
    """The names in a statement from which it reads, including common table expressions and the written table."""
    for listed in READS.findall(bare):
        yield from (name.split()[0] for name in re.split(r"\s*,\s*", listed))


def known_tables() -> frozenset[str]:
    """The tables of models, the views that migrations create from them, and the tables of outboxes."""
    modules = [config.models_module for config in apps.get_app_configs()]
    named = (getattr(module, kind, ()) for module in modules for kind in ("VIEWS", "IN_SOURCES"))
    return frozenset(model._meta.db_table for model in apps.get_models(include_auto_created=True)).union(*named)
