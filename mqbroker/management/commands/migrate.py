"""Migrates beside a broker that works: a migration that waits for a lock holds up no writer for long."""

import time
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from psycopg.errors import LockNotAvailable

from store.db import pooling

# Each statement that writes to the table waits behind a migration that waits for its lock.
LOCK_TIMEOUT = "500ms"
# Between two tries the writers catch up.
PAUSE_SECONDS = 1.0
# As long as a dump of a large database may hold its locks.
TRIES_SECONDS = 3600.0


def leave_pooler(alias: str) -> None:
    """Has Django's connection of this process lead to the server itself: a migration sets what is its session's own."""
    if alias == DEFAULT_DB_ALIAS and settings.DATABASE_POOLER != pooling.NONE:
        connections[alias].close()
        connections[alias].close_pool()  # type: ignore[attr-defined] # the stubs know no pool
        connections[alias].settings_dict.update(settings.DIRECT_DATABASE)


class Command(migrate.Command):
    """Django's, with a limit of LOCK_TIMEOUT for each lock. What was refused one is tried again for an hour.

    Each migration is a transaction: a refused one leaves nothing behind, and those before it stand.
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
