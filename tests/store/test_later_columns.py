"""A later version may add a column to the commit log while processes of this version serve."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from mqbroker_client import Consumer

from tests.broker import databases
from tests.broker.running import QUICK, RunningBroker


@pytest.fixture
def upgraded(prepared: str, tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker of its own: its table keeps another shape than that of other tests."""
    with (
        databases.copied(prepared) as url,
        RunningBroker(tmp_path, url, os.environ["REDIS_URL"], QUICK, tasks=False) as running,
    ):
        yield running


def test_messages_are_received_and_found_behind_a_new_column(upgraded: RunningBroker, orders: str) -> None:
    wire, consumer = upgraded.wire(), Consumer(upgraded.client(), "behind")
    wire.call("PUT", f"/v1/topics/{orders}", b"{}")
    wire.call("PUT", "/v1/consumer-groups/behind", b"{}")

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

    with psycopg.connect(upgraded.database_url, autocommit=True) as database:
        database.execute("ALTER TABLE commit_log ADD COLUMN content_type text")

    assert [received(f"behind-{number}") for number in range(4)] == [
        [f"behind-{number}".encode(), f"behind-{number}", 1] for number in range(4)
    ]
