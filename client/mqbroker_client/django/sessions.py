"""The barrier's way to one of Django's databases."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from django.db import connections

from mqbroker_client.barrier.dialects import dialect_of
from mqbroker_client.barrier.sessions import Connection, CursorSession, Session

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class DjangoSessions:
    alias: str

    def open(self) -> Session:
        # Not the thread's own connection: a view under ATOMIC_REQUESTS is in a transaction.
        connection = connections[self.alias].copy()
        connection.settings_dict["AUTOCOMMIT"] = True
        return self.of(connection)

    def of(self, connection: Connection) -> Session:
        return CursorSession(connection, dialect_of(connection.vendor), percent=True)

    def run(self, work: Callable[[], Found]) -> Found:
        return work()
