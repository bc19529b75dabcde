"""The characters of the outboxes' tests: a database of producers with the table of docs/sql.md, drained by a broker."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.broker import characters, databases
from tests.broker.polling import eventually
from tests.broker.receiving import Receiving
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Document
from tests.control.operators import Operator
from tests.outboxes.roles import PAGE, Roles


def table() -> str:
    """The statements that make an outbox, as the page has them."""
    _, _, behind = PAGE.read_text().partition("## The table\n")
    found = re.search(r"```sql\n(.*?)```", behind, re.DOTALL)
    assert found is not None
    return found[1]


@dataclass
class Shop(Receiving):
    """A producer with a database of its own, and its outbox at the broker."""

    url: str
    broker: RunningBroker
    name: str = field(default_factory=lambda: characters.name("shop"))

    def register(self, **fields: Any) -> Document:
        """Registers the outbox, or changes it."""
        given = {"url": self.url, "topics": [self.topic], **fields}
        answer = self.operator.put(f"/v1/outboxes/{self.name}", **given)
        assert answer.status in (200, 201), answer.document
        found: Document = answer.document
        return found

    @property
    def outbox(self) -> Document:
        """The outbox as the broker shows it."""
        found: Document = self.operator.reads(f"/v1/outboxes/{self.name}")
        return found

    def session(self) -> psycopg.Connection[dict[str, Any]]:
        """A session of the producer."""
        return psycopg.connect(self.url, row_factory=dict_row)

    def is_empty(self) -> bool:
        """Whether no row waits."""
        with self.session() as session:
            return session.execute("SELECT FROM mqbroker_outbox LIMIT 1").fetchone() is None

    def drains(self) -> None:
        """Waits until no row waits."""
        eventually(self.is_empty)


@pytest.fixture
def source() -> Iterator[str]:
    """A database of producers with an outbox."""
    with databases.fresh() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(table())
        yield url


@pytest.fixture
def shop(broker: RunningBroker, source: str) -> Iterator[Shop]:
    """A shop whose outbox is not registered yet."""
    made = Shop(Operator(broker.url, API_KEY), source, broker)
    made.prepare()
    yield made
    made.operator.delete(f"/v1/outboxes/{made.name}")


@pytest.fixture
def roles(shop: Shop) -> Iterator[Roles]:
    """The roles of the shop's database."""
    with Roles(shop.url) as made:
        shop.register(url=made.url(made.drain))
        yield made
