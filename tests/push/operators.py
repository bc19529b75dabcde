"""An operator who subscribes servers to topics."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.sql import SQL

from tests.broker import deliveries
from tests.broker.running import RunningBroker
from tests.broker.wire import Answer, Document, Wire

Result = TypeVar("Result")


class Operator:
    """An operator with a key for a broker, and its database."""

    def __init__(self, broker: RunningBroker) -> None:
        self._broker = broker
        self.wire: Wire = broker.wire()

    def asks(self, method: str, path: str, **fields: Any) -> Answer:
        return self.wire.call(method, path, json.dumps(fields).encode())

    def does(self, method: str, path: str, **fields: Any) -> Document:
        """The document of an answer with success."""
        answer = self.asks(method, path, **fields)
        assert answer.status in (200, 201, 204), answer
        found: Document = answer.document
        return found

    def subscribes(self, name: str, topic: str, url: str, **fields: Any) -> Document:
        """Has a topic pushed to a server, for a group of the subscription's name."""
        asked = {"group": name, "topic": topic, "url": url, **fields}
        return self.does("PUT", f"/v1/subscriptions/{name}", **asked)

    def changes(self, name: str, **fields: Any) -> Document:
        return self.does("PUT", f"/v1/subscriptions/{name}", **fields)

    def sees(self, name: str) -> Document:
        found: Document = self.wire.get(f"/v1/subscriptions/{name}").document
        return found

    def state(self, name: str) -> str:
        return str(self.sees(name)["state"])

    def last_failure(self, name: str) -> str:
        return self.sees(name)["last_failure"] or ""

    def in_flight(self, group: str) -> int:
        """Deliveries of the group that are not settled."""
        return sum(self._in_each_cell(deliveries.count, group))

    def listeners(self) -> int:
        """Processes that wait for messages: every web process, and each worker that has begun to push."""
        asked = (
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'mqbroker-listener'"
        )
        return max(int(row[0]) for row in self._execute(asked))

    def moves_back(self, name: str, days: float) -> None:
        """Lets time pass for a subscription that fails: so much longer ago it began, and the next probe is due."""
        self._execute(
            "UPDATE subscription SET failing_since = failing_since - make_interval(secs => 86400 * %s), "
            "open_until = now() WHERE name = %s RETURNING id",
            days,
            name,
        )

    @contextmanager
    def holds(self, name: str) -> Iterator[None]:
        """Locks the row of a subscription in the cell of its topic, as a long transaction does."""
        with psycopg.connect(self._broker.database_of(self.sees(name)["topic"])) as connection:
            connection.execute("SELECT FROM subscription WHERE name = %s FOR UPDATE", (name,))
            yield

    @contextmanager
    def hides_subscriptions(self) -> Iterator[None]:
        """Has every read of a subscription wait in vain."""
        with ExitStack() as held:
            for url in self._broker.databases:
                connection = held.enter_context(psycopg.connect(url))
                connection.execute("LOCK TABLE subscription IN ACCESS EXCLUSIVE MODE")
            yield

    def _in_each_cell(self, does: Callable[[psycopg.Connection[Any], str], Result], group: str) -> list[Result]:
        found = list[Result]()
        for url in self._broker.databases:
            with psycopg.connect(url, autocommit=True) as connection:
                found.append(does(connection, group))
        return found

    def _execute(self, statement: Any, *values: object) -> list[Any]:
        """The rows of a statement in every cell."""
        found: list[Any] = []
        for url in self._broker.databases:
            with psycopg.connect(url, autocommit=True) as connection:
                found += connection.execute(SQL(statement), values).fetchall()
        return found
