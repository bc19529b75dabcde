"""A later version may add a column to the commit log while processes of this version serve."""

from collections.abc import Iterator

import psycopg
import pytest
from mqbroker_client import Consumer

from tests.broker.running import RunningBroker
from tests.broker.wire import Wire


@pytest.fixture
def database(broker: RunningBroker, orders: str) -> Iterator[psycopg.Connection]:
    """A session in the database that has the messages of `orders`; a column that the test adds is dropped again."""
    with psycopg.connect(broker.database_of(orders), autocommit=True) as connection:
        yield connection
        connection.execute("ALTER TABLE commit_log DROP COLUMN IF EXISTS content_type")


def test_messages_are_received_and_found_behind_a_new_column(
    wire: Wire, consumer: Consumer, orders: str, database: psycopg.Connection
) -> None:
    def received(body: str) -> list[object]:
        """What a receive, a pull and a look-up by key give of a new message."""
        sent = wire.post("/v1/messages", {"topic": orders, "body": body, "keys": [body]}).document
        [delivery] = consumer.receive(orders)
        queue, offset = sent["queue_id"], sent["queue_offset"]
        pulled = wire.get(f"/v1/topics/{orders}/queues/{queue}/messages?offset={offset}")
        found = wire.get(f"/v1/messages?topic={orders}&key={body}")
        consumer.ack([delivery])
        return [
            delivery.message.body,
            pulled.document["messages"][0]["message"]["body"],
            len(found.document["results"]),
        ]

    # Several times: the sessions of the broker prepare their statements by then.
    assert [received(f"before-{number}") for number in range(4)] == [
        [f"before-{number}".encode(), f"before-{number}", 1] for number in range(4)
    ]

    database.execute("ALTER TABLE commit_log ADD COLUMN content_type text")

    assert [received(f"behind-{number}") for number in range(4)] == [
        [f"behind-{number}".encode(), f"behind-{number}", 1] for number in range(4)
    ]
