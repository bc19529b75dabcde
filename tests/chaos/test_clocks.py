"""Clocks two hours off: the database's clock decides what is due, whatever web processes and workers believe."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from mqbroker_client import Consumer, Producer

from embedded.processes.child import Child
from tests import packages
from tests.broker import databases
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import visible_at
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
