"""Readiness: the reasons why a web process cannot serve, and the warnings."""

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import psycopg
import redis
from django.conf import settings
from django.db import DatabaseError, ProgrammingError
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from console.cells import standing
from store.db import disk, guards
from store.process import runtime
from store.process.runtime import Runtime

REDIS_PATIENCE_SECONDS = 0.5
# The time-out for all cells together, and the number of cells that are read at the same time.
CELL_PATIENCE_SECONDS = 1.0
MAX_CELLS = 16
MAX_NAMED = 5
DISK_FULL = "the database's disk is full: writes are refused until there is room on its server"


def reasons_not_ready() -> list[str]:
    """The reasons why this process cannot serve now; empty when it can serve.

    Reads the server's state by a separate connection, and the applied migrations.
    """
    try:
        reasons = guards.look("mqbroker-ready").reasons
        missing = missing_migrations("default")
    except (DatabaseError, psycopg.Error) as problem:
        return [f"the database does not answer as it should ({type(problem).__name__})"]
    if reasons:
        return list(reasons)
    return [f"migrations are not applied: {missing}; run `manage.py prepare`"] if missing else []


def missing_migrations(alias: str) -> str:
    """A text with the first migrations that a database lacks; empty when it has all."""
    try:
        applied = set(MigrationRecorder.Migration.objects.using(alias).values_list("app", "name"))
    except ProgrammingError:
        applied = set()  # The table of migrations does not exist.
    missing = sorted(f"{app}.{name}" for app, name in known_migrations() - applied)
    more = f" and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
    return f"{', '.join(missing[:MAX_NAMED])}{more}"


@cache
def known_migrations() -> frozenset[tuple[str, str]]:
    """The migrations of this program, read once, because they change only with its code."""
    return frozenset(MigrationLoader(connection=None).disk_migrations or ())


def warnings() -> list[str]:
    """The warnings of a process that can serve: reasons why it is slower, or cannot do a part of its work."""
    found = list(_of_databases())
    with contextlib.suppress(DatabaseError):
        found += [move.sentence] if (move := standing.read()) is not None else []
    if disk.is_recent():
        found.append(DISK_FULL)
    redis = redis_warning()
    return found if redis is None else [*found, redis]


def _of_databases() -> Iterator[str]:
    """The problems of the cells' databases, which are read at once."""
    pool = ThreadPoolExecutor(MAX_CELLS)
    looks = [(cell, pool.submit(guards.look, "mqbroker-ready", cell.url)) for cell in runtime.cells()]
    # A database that hangs occupies its thread for some seconds longer.
    pool.shutdown(wait=False)
    until = time.monotonic() + CELL_PATIENCE_SECONDS
    for cell, look in looks:
        named = "" if (name := runtime.placement.label(cell)) is None else f"cell {name}: "
        try:
            found = look.result(max(0.0, until - time.monotonic()))
        except (psycopg.OperationalError, TimeoutError):
            # A control that does not answer is a reason for not being ready, not a warning.
            if cell.url:
                yield f"the cell {cell.name} does not answer: its topics are answered by 503 cell_away"
            continue
        # The control's problems are reasons for not being ready, not warnings.
        unfit = found.reasons if cell.url else ()
        slowed = found.warnings if found.warnings and not is_fenced(cell) else ()
        yield from (f"{named}{warning}" for warning in (*unfit, *slowed))


def is_fenced(cell: Runtime) -> bool:
    """Whether a cell takes no writes because of a move of topics."""
    move = standing.read()
    return move is not None and move.fences and move.source_id == cell.cell


def redis_warning() -> str | None:
    """The failure of Redis, or None. Without Redis checks and delays are late by seconds; nothing else changes."""
    with redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=REDIS_PATIENCE_SECONDS, socket_connect_timeout=REDIS_PATIENCE_SECONDS
    ) as client:
        try:
            client.ping()
        except redis.RedisError as problem:
            return f"Redis does not answer ({type(problem).__name__}): checks and delays are late by seconds"
    return None
