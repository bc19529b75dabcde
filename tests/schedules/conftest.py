"""The characters of the schedules' tests: a schedule of a topic, and a consumer group that receives what is sent."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from tests.broker import characters
from tests.broker.receiving import Receiving
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Answer, Document
from tests.control.operators import Operator


@dataclass
class Plan(Receiving):
    """A schedule by name, with a topic and a group of its own."""

    database_url: str
    name: str = field(default_factory=lambda: characters.name("nightly"))

    def tries(self, **fields: Any) -> Answer:
        """Makes or changes it, whatever the answer."""
        return self.operator.put(f"/v1/schedules/{self.name}", **fields)

    def puts(self, **fields: Any) -> Document:
        """Makes or changes it. A new one sends `report` to the topic."""
        answer = self.tries(**{"message": {"topic": self.topic, "body": "report"}, **fields})
        assert answer.status in (200, 201), answer.document
        found: Document = answer.document
        return found

    @property
    def shown(self) -> Document:
        """As the broker shows it."""
        found: Document = self.operator.reads(f"/v1/schedules/{self.name}")
        return found

    def fires(self) -> Document:
        """Fires it by hand."""
        answer = self.operator.make(f"/v1/schedules/{self.name}/firings")
        assert answer.status == 201, answer.document
        found: Document = answer.document
        return found

    def receives_all(self, number: int) -> list[Document]:
        """As `Receiving.receives_all`, in the order of their times."""
        return sorted(super().receives_all(number), key=time_of)

    def was_due(self, ago: str) -> None:
        """Moves its next time back, as if no process had been there for so long."""
        with psycopg.connect(self.database_url, autocommit=True) as session:
            session.execute(
                "UPDATE schedule SET next_at = date_trunc('minute', now()) - %s::interval WHERE name = %s",
                [ago, self.name],
            )


def time_of(message: Document) -> str:
    """The time that a message was sent for."""
    found: str = message["properties"]["scheduled_at"]
    return found


@pytest.fixture
def plan(broker: RunningBroker) -> Iterator[Plan]:
    """A schedule that is not made yet."""
    made = Plan(Operator(broker.url, API_KEY), broker.database_url)
    made.prepare()
    yield made
    made.operator.delete(f"/v1/schedules/{made.name}")
