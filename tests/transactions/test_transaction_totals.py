"""The totals of transactions: how many were ever committed, rolled back and discarded, by topic and producer group."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from mqbroker_client import Producer
from psycopg.rows import namedtuple_row

from store.db.statements import Statement
from tests.broker import databases, metrics
from tests.broker.endpoints import ProducerEndpoint, says
from tests.broker.polling import eventually
from tests.broker.tellings import told
from tests.broker.wire import Wire
from tests.console.rows import Broker
from transactions.operations.totals import COUNT_TOTALS, LIST_TOTALS

ENDS = ("committed", "rolled_back", "discarded")
AGO = timedelta(minutes=1)


def of_topic(wire: Wire, topic: str, group: str) -> tuple[float, ...]:
    """The transactions of a topic and a producer group that ended in each way, as /metrics says."""
    found = metrics.read(wire.url)
    return tuple(found["mqbroker_transactions_total", end, group, topic] for end in ENDS)


def test_each_end_of_a_transaction_counts_once_at_each_of_its_topics(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    producer_endpoint.replies(says(500))
    mails = f"{orders}-mail"
    two = [{"topic": orders, "body": "tea"}, {"topic": orders, "body": "milk"}, {"topic": mails, "body": "mail"}]
    given_up = producer.begin(orders, b"order 1")
    producer.begin(orders, b"order 2").commit()
    half = wire.post("/v1/transactions", {"producer_group": producer.group, "messages": two}).document
    end = {"producer_group": producer.group, "state": "ROLLBACK"}
    wire.post(f"/v1/transactions/{half['transaction_id']}/end", end)

    eventually(lambda: told(wire, given_up.transaction_id)["state"] == "DISCARDED")

    assert of_topic(wire, orders, producer.group) == (1, 1, 1)
    assert of_topic(wire, mails, producer.group) == (0, 1, 0)


class Counting:
    """A database without a broker, its rows, and the counting of its operations."""

    def __init__(self, url: str, session: psycopg.Connection[Any]) -> None:
        self.url, self.session = url, session
        [now] = session.execute("SELECT now() AS now").fetchall()
        self.rows = Broker(session, now.now, segment=1)
        self.topic, self.group = self.rows.topic("orders"), self.rows.producer_group("shop")

    def run(self, statement: Statement[Any], **given: int | list[str] | None) -> list[Any]:
        return self.session.execute(statement.text.encode(), given).fetchall()

    def count(self, times: int = 1, most: int = 1_000) -> int:
        """How far the operations are counted after so many runs of the task."""
        for _ in range(times):
            self.run(COUNT_TOTALS, max_operations=most)
        [row] = self.session.execute("SELECT next_id FROM counted_operations").fetchall()
        return int(row.next_id)

    def listed(self) -> list[tuple[int, ...]]:
        """The committed, rolled back and discarded, as a scrape reads them."""
        found = self.run(LIST_TOTALS, max_operations=1_000, max_rows=10, topic=None, producer_group=None, starts=[""])
        return [(row.committed, row.rolled_back, row.discarded) for row in found]


@pytest.fixture
def counting(prepared: str) -> Iterator[Counting]:
    with (
        databases.copied(prepared) as url,
        psycopg.connect(url, autocommit=True, row_factory=namedtuple_row) as session,
    ):
        yield Counting(url, session)


def test_totals_outlive_the_operations_that_were_counted(counting: Counting) -> None:
    for _ in range(5):
        counting.rows.committed(counting.group, counting.topic, b"order", AGO)
    counting.rows.rolled_back(counting.group, counting.topic, AGO)
    assert counting.listed() == [(5, 1, 0)]

    counting.count(times=5, most=2)
    assert counting.listed() == [(5, 1, 0)]

    counting.session.execute("DELETE FROM operation")
    counting.rows.rolled_back(counting.group, counting.topic, AGO)
    assert counting.listed() == [(5, 2, 0)]


def test_an_operation_that_is_written_while_later_ones_are_counted_is_counted_once(counting: Counting) -> None:
    with psycopg.connect(counting.url, row_factory=namedtuple_row) as late:
        Broker(late, counting.rows.now, segment=1).rolled_back(counting.group, counting.topic, AGO)
        counting.rows.committed(counting.group, counting.topic, b"order", AGO)

        before = counting.count(times=3)
        assert counting.listed() == [(1, 0, 0)]
        late.commit()

        assert counting.listed() == [(1, 1, 0)]
        assert counting.count(times=3) > before
        assert counting.listed() == [(1, 1, 0)]
        counting.session.execute("DELETE FROM operation")
        assert counting.listed() == [(1, 1, 0)]


def test_the_totals_of_a_deleted_topic_are_forgotten(counting: Counting) -> None:
    counting.rows.committed(counting.group, counting.topic, b"order", AGO)
    counting.count(times=3)

    counting.session.execute("DELETE FROM topic WHERE id = %s", [counting.topic])
    counting.count()

    assert counting.session.execute("SELECT * FROM transaction_total").fetchall() == []
    assert counting.listed() == []
