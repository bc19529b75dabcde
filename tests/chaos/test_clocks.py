"""Clocks two hours off: the database's clock decides what is due, whatever web processes and workers believe."""

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
import urllib3
from mqbroker_client import Consumer, Producer

from mqbroker.embedded.processes.child import Child
from tests import packages
from tests.broker import databases
from tests.broker.endpoints import ProducerEndpoint, says
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import ended, visible_at
from tests.broker.wire import Document, Wire
from tests.chaos import clocks

# A worker whose clock is ahead takes each tick for one that came too late; a web process stands in, seconds later.
LATENESS = timedelta(seconds=10)
DELAYS: tuple[dict[str, object], ...] = (
    {"delay_level": 1},
    {"delay_level": 5},
    {"delay_seconds": 1.5},
    {"deliver_at": timedelta(seconds=2)},
)


@pytest.fixture(
    scope="module",
    params=[("+2h", "-2h"), ("-2h", "+2h")],
    ids=["web ahead, worker behind", "web behind, worker ahead"],
)
def broker(
    prepared: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningBroker]:
    """A broker whose web process and worker live two hours before and after the rest of us."""
    if clocks.library() is None:
        packages.skip_for_want_of("libfaketime", f"/{clocks.LIBRARIES}")
    with databases.copied(prepared) as database_url:
        broker = RunningBroker(tmp_path_factory.mktemp("broker"), database_url, os.environ["REDIS_URL"])
        for child, offset in zip((broker.webs[0], broker.worker), request.param, strict=True):
            child.environment |= clocks.environment(offset)
        with broker:
            assert all(has_another_clock(child) for child in (broker.webs[0], broker.worker))
            yield broker


def has_another_clock(child: Child) -> bool:
    return "libfaketime" in Path(f"/proc/{child.pid}/maps").read_text()


def test_the_web_process_is_off_by_two_hours(wire: Wire) -> None:
    off = datetime.fromisoformat(wire.get("/v1/stats").document["at"]) - datetime.now(UTC)

    assert timedelta(hours=1.9) < abs(off) < timedelta(hours=2.1)


def test_a_delayed_message_is_neither_early_nor_late_by_hours(wire: Wire, orders: str) -> None:
    sent = [send(wire, orders, delay) for delay in DELAYS]

    for one in sent:
        due = datetime.fromisoformat(one["deliver_at"])
        assert due <= visible_at(wire, one["message_id"]) < due + LATENESS


def test_a_transaction_waits_for_its_delay_from_its_commit_on(producer: Producer, wire: Wire, orders: str) -> None:
    transaction = producer.begin(orders, b"order", delay_seconds=1)

    earliest = datetime.now(UTC) + timedelta(seconds=1)
    transaction.commit()

    assert earliest <= visible_at(wire, transaction.message_id) < earliest + LATENESS


def test_a_retry_waits_for_its_delay(producer: Producer, consumer: Consumer, orders: str) -> None:
    producer.send(orders, b"order")
    consumer.nack(consumer.receive(orders))

    # The retry waits at the third level.
    earliest = datetime.now(UTC) + timedelta(seconds=0.9)
    [again] = eventually(partial(consumer.receive, orders))

    assert again.delivery_attempt == 2
    assert earliest <= datetime.now(UTC) < earliest + LATENESS


def send(wire: Wire, topic: str, delay: dict[str, object]) -> Document:
    """The answer to the send of a delayed message; a time to deliver at is counted from now."""
    at = delay.get("deliver_at")
    given = {"deliver_at": (datetime.now(UTC) + at).isoformat()} if isinstance(at, timedelta) else delay
    answer = wire.post("/v1/messages", {"topic": topic, "body": "order", **given})
    assert answer.status == 201, answer
    found: Document = answer.document
    return found


def test_the_age_of_the_oldest_unacked_message_is_by_the_clock_of_the_messages(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    consumer.receive(orders, wait_seconds=5)
    labels = f'consumer_group="{consumer.group}",topic="{orders}"'

    text = urllib3.request("GET", f"{broker.url}/metrics", headers={"Authorization": f"Bearer {API_KEY}"}).data.decode()

    [line] = [
        line for line in text.splitlines() if line.startswith("mqbroker_oldest_unacked_seconds{") and labels in line
    ]
    assert 0 < float(line.rpartition(" ")[2]) < 600


def test_calls_are_dated_by_the_clock_of_the_database(
    broker: RunningBroker,
    wire: Wire,
    producer: Producer,
    consumer: Consumer,
    producer_endpoint: ProducerEndpoint,
    orders: str,
) -> None:
    """A server that verifies a signature refuses one that is five minutes off, and no check would ever be answered."""
    transaction = producer.begin(orders, b"order 1")
    eventually(partial(ended, wire, transaction.transaction_id))
    [endpoint] = wire.get(f"/v1/producer-groups/{producer.group}/endpoints").document["results"]
    wire.post(f"/v1/producer-groups/{producer.group}/endpoints/{endpoint['id']}/test", {})
    producer_endpoint.replies(says(204))
    subscription = {"group": consumer.group, "topic": orders, "url": producer_endpoint.url}
    assert wire.call("PUT", f"/v1/subscriptions/{consumer.group}", json.dumps(subscription).encode()).status == 201

    asked = eventually(lambda: list(producer_endpoint.asked) if len(producer_endpoint.asked) > 2 else None)

    kinds = {one.document["type"] for one in asked}
    assert kinds == {"transaction.check", "messages.deliver"}
    assert [one for one in asked if abs(float(one.headers["webhook-timestamp"]) - time.time()) > 60] == []
