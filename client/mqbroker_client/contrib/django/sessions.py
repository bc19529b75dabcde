"""The barrier's sessions in one of Django's databases."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from django.db import connections

from mqbroker_client.barrier.dialects import dialect_of
from mqbroker_client.barrier.sessions import Connection, CursorSession, Session
from mqbroker_client.barrier.transactions import refuse_autocommit

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class DjangoSessions:
    alias: str

    def open(self) -> Session:
        # The thread's own connection cannot be used: a view under ATOMIC_REQUESTS is in a transaction.
        connection = connections[self.alias].copy()
        connection.settings_dict["AUTOCOMMIT"] = True
        # The copy must not use Django's pool: requests of the program may occupy all connections of the pool.
        connection.settings_dict["OPTIONS"].pop("pool", None)
        return self.over(connection)

    def of(self, connection: Connection) -> Session:
        if connection.get_autocommit():
            refuse_autocommit(f"begin a transaction first, by transaction.atomic(using={self.alias!r})")
        return self.over(connection)

    def over(self, connection: Connection) -> Session:
        """A session over the connection, whether a transaction is open or not."""
        return CursorSession(connection, dialect_of(connection.vendor), percent=True)

    def run(self, work: Callable[[], Found]) -> Found:
        return work()
