"""Readiness: the reasons why a web process cannot serve, and the warning about Redis."""

from functools import cache

import psycopg
import redis
from django.conf import settings
from django.db import DatabaseError, ProgrammingError
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from store.db import connections

REDIS_PATIENCE_SECONDS = 0.5
MAX_NAMED = 5


def reasons_not_ready() -> list[str]:
    """Why this process cannot serve now; empty when it can.

    Reads the applied migrations. A connection of its own comes first: opening one has a time limit, where a query to a
    server that hangs would wait as long as the server hangs.
    """
    try:
        psycopg.connect(connections.conninfo("mqbroker-ready")).close()
        applied = set(MigrationRecorder.Migration.objects.using("default").values_list("app", "name"))
    except ProgrammingError:
        applied = set()  # Not even the table of migrations is there.
    except (DatabaseError, psycopg.Error) as problem:
        return [f"the database does not answer as it should ({type(problem).__name__})"]
    missing = sorted(f"{app}.{name}" for app, name in known_migrations() - applied)
    if not missing:
        return []
    more = f" and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
    return [f"migrations are not applied: {', '.join(missing[:MAX_NAMED])}{more}; run `manage.py prepare`"]


@cache
def known_migrations() -> frozenset[tuple[str, str]]:
    """The migrations of this program, read once: they change only with its code."""
    return frozenset(MigrationLoader(connection=None).disk_migrations or ())


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
