"""Migrates while the broker runs: a migration that waits for a lock does not block writers for long."""

import time
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from psycopg.errors import LockNotAvailable

from store.db import pooling

# All statements that write to a table wait behind a migration that waits for the table's lock.
LOCK_TIMEOUT = "500ms"
# The pause between two attempts; waiting writers continue in it.
PAUSE_SECONDS = 1.0
# The time for attempts: a dump of a large database may hold its locks for so long.
TRIES_SECONDS = 3600.0


def leave_pooler(alias: str) -> None:
    """Connects Django in this process to the server itself, without a pooler, because migrations
    set session variables.
    """
    if alias == DEFAULT_DB_ALIAS and settings.DATABASE_POOLER != pooling.NONE:
        connections[alias].close()
        connections[alias].close_pool()  # type: ignore[attr-defined]  # missing in the stubs
        connections[alias].settings_dict.update(settings.DIRECT_DATABASE)


class Command(migrate.Command):
    """Django's `migrate` with LOCK_TIMEOUT for each lock. A migration that got no lock is repeated for up to an hour.

    Each migration is a transaction: a failed migration changes nothing, and earlier migrations stay applied.
    """

    def handle(self, *args: Any, **options: Any) -> None:
        leave_pooler(options["database"])
        deadline = time.monotonic() + TRIES_SECONDS
        while True:
            with connections[options["database"]].cursor() as cursor:
                cursor.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
            try:
                super().handle(*args, **options)
                return
            except OperationalError as problem:
                if not isinstance(problem.__cause__, LockNotAvailable):
                    raise
                if time.monotonic() > deadline:
                    raise CommandError("A table has been locked for an hour: look in pg_stat_activity.") from problem
            time.sleep(PAUSE_SECONDS)
