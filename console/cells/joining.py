"""The conditions under which a database may join the installation as a cell; checked before any write to it."""

from collections.abc import Iterator
from uuid import UUID

import psycopg
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from access.models import ApiKey
from console.cells.errors import CellIllegal
from store.db import guards, patience, pooling
from store.db.server_url import database
from store.models import Cell, CellIdentity, CommitLog, Topic
from store.naming import topics
from store.process.runtime import CONTROL

EMPTY = "Give an empty database: CREATE DATABASE makes one."
OWN_APP = "store"


def require_server(name: str, url: str) -> None:
    """Raises CellIllegal unless the URL's server takes writes, and never loses an acknowledged write."""
    require_own_sessions()
    try:
        database(url, f"The URL of the cell {name}")
        with patience.of(patience.REQUEST_SECONDS):
            found = guards.look("mqbroker-cells", url)
    except ImproperlyConfigured as problem:
        raise CellIllegal(str(problem)) from None
    except psycopg.OperationalError as problem:
        reason = " ".join(str(problem).split())
        raise CellIllegal(f"The URL of the cell {name} does not lead to a database: {reason}") from None
    if found.reasons or found.warnings:
        reasons = "; ".join((*found.reasons, *found.warnings))
        raise CellIllegal(f"The database of the cell {name} cannot be used: {reasons}")


def require_own_sessions() -> None:
    """Raises CellIllegal when a pooler shares the control's sessions, because a shared session cannot be ended for one
    client.
    """
    if settings.DATABASE_POOLER == pooling.TRANSACTION:
        raise CellIllegal(f"{guards.SPREAD[0].upper()}{guards.SPREAD[1:]}")


def require_own(alias: str, cell: Cell) -> None:
    """Raises CellIllegal unless the database is the cell's own database, the only one with the cell's messages."""
    if CellIdentity._meta.db_table in connections[alias].introspection.table_names():
        theirs = CellIdentity.objects.using(alias).get()
        if (theirs.cell_id, theirs.installation) == (cell.id, installation()):
            return
    raise CellIllegal(
        f"The URL does not lead to the database of the cell {cell.name}: give the present URL of this database, "
        "or add the other database under a new cell name."
    )


def is_prepared(alias: str, name: str, cell: Cell | None) -> bool:
    """Whether the database has the tables of this version of the broker. False for an empty database, and for the
    database of a cell that was away during a migration.

    Raises CellIllegal for tables of another version or application, and while the control's tables are of another
    version.
    """
    needed = set(MigrationLoader(None).disk_migrations)
    if needed - _applied(DEFAULT_DB_ALIAS):
        raise CellIllegal("The control has the tables of an earlier version: run `manage.py prepare` first.")
    if not connections[alias].introspection.table_names():
        return False
    applied = _applied(alias)
    if OWN_APP not in {app for app, _ in applied}:
        raise CellIllegal(f"The database of the cell {name} holds tables of another application. {EMPTY}")
    if applied < needed and cell is not None:
        return False
    if applied != needed:
        raise CellIllegal(
            f"The tables of the database of the cell {name} belong to another version of the broker: the "
            f"difference is the migration {_named(applied ^ needed)}. {EMPTY} To keep the data of this "
            "database, first migrate it with the broker that uses it."
        )
    return True


def _applied(alias: str) -> set[tuple[str, str]]:
    return set(MigrationRecorder(connections[alias]).applied_migrations())


def _named(migrations: set[tuple[str, str]]) -> str:
    one, *more = sorted(f"{app}.{migration}" for app, migration in migrations)
    return f"{one} and {len(more)} more" if more else one


def require_joinable(alias: str, name: str) -> None:
    """Raises CellIllegal for the database of another cell, or with messages or configuration of an installation."""
    theirs = CellIdentity.objects.using(alias).get()
    if theirs.installation == installation():
        _require_left(alias, theirs, name)
    elif theirs.cell_id != CONTROL:
        raise CellIllegal(
            f"The database of the cell {name} belongs to another installation, as one of its cells. {EMPTY}"
        )
    elif held := ", ".join(_held(alias)):
        raise CellIllegal(f"The database of the cell {name} holds {held} of another installation. {EMPTY}")


def _require_left(alias: str, theirs: CellIdentity, name: str) -> None:
    """Raises CellIllegal unless the database was a removed cell, or a cell that a killed call had begun to add."""
    if theirs.cell_id == CONTROL:
        raise CellIllegal(f"The database of the cell {name} is the control itself, or a copy of it. {EMPTY}")
    other = Cell.objects.filter(id=theirs.cell_id).first()
    if other is not None:
        raise CellIllegal(f"The database of the cell {name} is already in use as the cell {other.name}. {EMPTY}")
    if CommitLog.objects.using(alias).exists():
        raise CellIllegal(f"The database of the cell {name} still holds messages of a cell that was removed. {EMPTY}")


def _held(alias: str) -> Iterator[str]:
    if CommitLog.objects.using(alias).exists():
        yield "messages"
    if Topic.objects.using(alias).exclude(name__in=topics.SYSTEM).exists():
        yield "topics"
    if ApiKey.objects.using(alias).exists():
        yield "API keys"


def installation() -> UUID:
    """The id of the installation, which is stored in each of its databases."""
    return CellIdentity.objects.get().installation
