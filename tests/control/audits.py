"""The audit of a running broker, as PostgreSQL has it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import psycopg
from psycopg.rows import dict_row

from tests.broker.running import RunningBroker


class Audit:
    """The entries, the first one first."""

    def __init__(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        self.connection = connection

    @classmethod
    @contextmanager
    def of_broker(cls, broker: RunningBroker) -> Iterator[Self]:
        """Reads by a connection of its own, until the end of the block."""
        with psycopg.connect(broker.database_url, autocommit=True, row_factory=dict_row) as connection:
            yield cls(connection)

    def of(self, target: str) -> list[dict[str, Any]]:
        """The entries of a target."""
        return self.connection.execute("SELECT * FROM audit_entry WHERE target = %s ORDER BY id", (target,)).fetchall()

    def by_action(self, action_id: str) -> list[dict[str, Any]]:
        """The results of an action."""
        query = "SELECT * FROM audit_entry WHERE action_id = %s ORDER BY id"
        return self.connection.execute(query, (action_id,)).fetchall()

    def by_request(self, request_id: str) -> list[dict[str, Any]]:
        """The entries of a request."""
        query = "SELECT * FROM audit_entry WHERE request_id = %s ORDER BY id"
        return self.connection.execute(query, (request_id,)).fetchall()
