"""Migrations expand: the processes of the version before go on beside them, so that an upgrade needs no stop."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from django.db import models
from django.db.migrations import (
    AddField,
    AlterField,
    CreateModel,
    DeleteModel,
    Migration,
    RemoveField,
    RenameField,
    RenameModel,
    RunSQL,
)
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.models import NOT_PROVIDED

from mqbroker.embedded import preparation
from tests.house.sources import ROOT, labels

# The last migration of each app in 0.1.0: before it there was no version to upgrade from.
FIRST_RELEASE = {
    "access": "0006_namespace",
    "actions": "0002_right",
    "analytics": "0001_initial",
    "cells": "0001_move",
    "delivery": "0007_fair_by",
    "monitoring": "0001_history",
    "mqbroker": "0002_keys_move_to_access",
    "outboxes": "0001_outbox",
    "schedules": "0001_schedules",
    "scheduling": "0005_timer_vacuum",
    "store": "0013_namespace",
    "transactions": "0008_lines",
}
CONTRACTING = (AlterField, DeleteModel, RemoveField, RenameField, RenameModel)
CONTRACTING_SQL = re.compile(r"\b(DROP (COLUMN|TABLE|VIEW|FUNCTION)|RENAME|SET NOT NULL|ALTER COLUMN \S+ TYPE)\b", re.I)
# A module that contracts names the version that has expanded it: `CONTRACTS = "0.2"`, in a release after that one.
EXPANDED_IN = "CONTRACTS"


def contractions(operations: Sequence[Operation]) -> Iterator[str]:
    """What the processes of the version before would fail by."""
    for operation in operations:
        if isinstance(operation, CONTRACTING):
            yield operation.describe()
        elif isinstance(operation, AddField):
            field = operation.field
            if not field.null and field.db_default is NOT_PROVIDED:
                yield f"{operation.describe()}, which has no default in the database"
        elif isinstance(operation, RunSQL):
            yield from (found[0] for found in CONTRACTING_SQL.finditer(str(operation.sql)))


def later() -> Iterator[Migration]:
    """The migrations behind the first release that contract nothing by their own word."""
    for (app, name), migration in MigrationLoader(None).disk_migrations.items():
        if app in labels().values() and name > FIRST_RELEASE.get(app, "") and not hasattr(migration, EXPANDED_IN):
            yield migration


def test_no_migration_takes_away_what_the_version_before_needs() -> None:
    found = {str(migration): list(contractions(migration.operations)) for migration in later()}

    assert {name: breaches for name, breaches in found.items() if breaches} == {}


def test_the_next_start_of_a_broker_notices_a_new_migration_of_each_app() -> None:
    noticed = {path.parents[1].relative_to(ROOT) for path in preparation.migrations()}

    assert {folder for folder in labels() if (ROOT / folder / "migrations").exists()} <= noticed
    assert Path("console/monitoring") in noticed


@pytest.mark.parametrize(
    "operation",
    [
        RemoveField("topic", "home"),
        RenameField("topic", "home", "place"),
        AddField("topic", "colour", models.TextField()),
        RunSQL("ALTER TABLE topic ALTER COLUMN home SET NOT NULL"),
        RunSQL("ALTER TABLE topic DROP COLUMN home"),
        DeleteModel("topic"),
    ],
)
def test_what_takes_away_is_found(operation: Operation) -> None:
    assert len(list(contractions([operation]))) == 1


@pytest.mark.parametrize(
    "operation",
    [
        CreateModel("colour", []),
        AddField("topic", "colour", models.TextField(null=True)),
        AddField("topic", "colour", models.TextField(db_default="red")),
        RunSQL("ALTER TABLE topic ADD COLUMN colour text"),
    ],
)
def test_what_adds_is_let_through(operation: Operation) -> None:
    assert list(contractions([operation])) == []
