"""Holds the console to asking the apps: a fact is computed once, below, and the console only shows it."""

import ast
from pathlib import Path

from tests.house.sources import Source, modules

# What reads a table through a model: `Topic.objects`, `Topic._base_manager`.
MANAGERS = {"objects", "_default_manager", "_base_manager"}
# What reads it without one.
DOORS = {"psycopg", "django.db", "store.db.connections", "store.db.statements"}
# A page of Django's admin names the type of what it shows.
TYPES = {"django.db.models.Model"}
# Django apps of their own, each with tables and statements.
APPS = {"actions", "cells", "monitoring"}
# The console's own table, of sign-ins, the connection that a password or a provider's answer gives back, and the users
# that an identity provider knows.
OWN = {
    "console/users/sign_in_attempts.py",
    "console/models.py",
    "console/users/passwords.py",
    "console/sign_on/subjects.py",
}


def test_the_console_has_no_query_of_its_own() -> None:
    shown = [module for module in modules("console") if module.path.parts[1] not in APPS]

    assert {str(module) for module in shown if queries(module)} - OWN == set()


def test_the_checker_catches_each_way_to_a_table() -> None:
    assert queries(Source(Path("console/pages/x.py"), "found = Topic.objects.count()")) == [1]
    assert queries(Source(Path("console/pages/x.py"), "\nfrom django.db import connection")) == [2]
    assert queries(Source(Path("console/pages/x.py"), "import psycopg")) == [1]
    assert queries(Source(Path("console/pages/x.py"), "from store.db import connections")) == [1]
    assert queries(Source(Path("console/pages/x.py"), "from store import topics\nfound = topics.find()")) == []


def queries(module: Source) -> list[int]:
    """The lines on which a module goes to a table itself."""
    return sorted({line for node in ast.walk(module.tree) for line in _lines(node)})


def _lines(node: ast.AST) -> list[int]:
    if isinstance(node, ast.Attribute) and node.attr in MANAGERS:
        return [node.lineno]
    if isinstance(node, ast.Import):
        return [node.lineno] if {alias.name for alias in node.names} & DOORS else []
    if isinstance(node, ast.ImportFrom):
        names = {f"{node.module}.{alias.name}" for alias in node.names} - TYPES
        doors = any(name == door or str(name).startswith(f"{door}.") for name in names for door in DOORS)
        return [node.lineno] if doors else []
    return []
