"""Readiness: the reasons why a web process cannot serve, and the warning about Redis."""

import contextlib
from functools import cache

import psycopg
import redis
from django.conf import settings
from django.db import DatabaseError, ProgrammingError
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from store.db import disk, guards

REDIS_PATIENCE_SECONDS = 0.5
MAX_NAMED = 5
DISK_FULL = "the database's disk is full: writes are refused until there is room on its server"


def reasons_not_ready() -> list[str]:
    """Why this process cannot serve now; empty when it can.

    Looks at the server by a connection of its own, and at the applied migrations.
    """
    try:
        reasons = guards.look("mqbroker-ready").reasons
        applied = set(MigrationRecorder.Migration.objects.using("default").values_list("app", "name"))
    except ProgrammingError:
        applied = set()  # Not even the table of migrations is there.
    except (DatabaseError, psycopg.Error) as problem:
        return [f"the database does not answer as it should ({type(problem).__name__})"]
    if reasons:
        return list(reasons)
    missing = sorted(f"{app}.{name}" for app, name in known_migrations() - applied)
    if not missing:
        return []
    more = f" and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
    return [f"migrations are not applied: {', '.join(missing[:MAX_NAMED])}{more}; run `manage.py prepare`"]


@cache
def known_migrations() -> frozenset[tuple[str, str]]:
    """The migrations of this program, read once: they change only with its code."""
    return frozenset(MigrationLoader(connection=None).disk_migrations or ())


def warnings() -> list[str]:
    """What makes this process slower, or a part of its work impossible, while it can serve."""
    found: list[str] = []
    with contextlib.suppress(psycopg.OperationalError):
        found += guards.look("mqbroker-ready").warnings
    if disk.is_recent():
        found.append(DISK_FULL)
    redis = redis_warning()
    return found if redis is None else [*found, redis]


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
