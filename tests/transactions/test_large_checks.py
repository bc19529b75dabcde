"""Checks of large messages: bounded in bytes, and smaller where a server refuses their size."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web
from mqbroker_client import Admin, Producer

from tests.broker.characters import register
from tests.broker.endpoints import Asked, ProducerEndpoint, Reply, states
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import ended, told
from tests.broker.wire import Wire

MIB = 1024 * 1024
# Two of the body are less than a call's 8 MiB, three are more.
BODY = "x" * (3 * MIB)
# As base64 it is a third longer.
LARGEST = b"\xff" * (4 * MIB)
ENVELOPE_BYTES = 4096


def takes_up_to(size: int) -> Reply:
    """Commits, and refuses larger requests as servers do."""
    commits = states("COMMIT")

    async def reply(asked: Asked) -> web.StreamResponse:
        return web.Response(status=413) if len(asked.body) > size else await commits(asked)

    return reply


@pytest.fixture
def paused(broker: RunningBroker, producer: Producer) -> str:
    """A producer group whose checks wait until the test has begun what it needs."""
    Admin(broker.client()).create_producer_group(producer.group, checks_paused=True)
    return producer.group


def test_a_call_and_the_worker_are_bounded_in_bytes(
    broker: RunningBroker, wire: Wire, producer: Producer, endpoint: ProducerEndpoint, orders: str, paused: str
) -> None:
    register(broker, paused, endpoint.url, max_batch=100, timeout_seconds=10)
    begun = [producer.begin(orders, BODY.encode()) for _ in range(40)]
    before = peak_bytes(broker)

    Admin(broker.client()).create_producer_group(paused, checks_paused=False)
    for transaction in begun:
        eventually(partial(ended, wire, transaction.transaction_id), within_seconds=120)

    assert {told(wire, transaction.transaction_id)["check_times"] for transaction in begun} == {1}
    assert max(len(asked.body) for asked in endpoint.asked) <= 8 * MIB + ENVELOPE_BYTES
    # 120 MiB of bodies in one call took more than 600 MiB.
    assert peak_bytes(broker) - before < 300 * MIB


def peak_bytes(broker: RunningBroker) -> int:
    """The most memory that any process of the worker has had so far."""
    return max(_peak_bytes(pid) for pid in [broker.worker.pid, *_children(broker.worker.pid)])


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _peak_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


def test_a_call_that_is_too_large_is_made_again_in_smaller_ones_and_counted_once(
    broker: RunningBroker, wire: Wire, producer: Producer, endpoint: ProducerEndpoint, orders: str, paused: str
) -> None:
    endpoint.replies(takes_up_to(100_000))
    register(broker, paused, endpoint.url, max_batch=100, timeout_seconds=10)
    begun = [producer.begin(orders, b"x" * 30_000) for _ in range(9)]

    Admin(broker.client()).create_producer_group(paused, checks_paused=False)
    decided = [eventually(partial(ended, wire, transaction.transaction_id)) for transaction in begun]

    assert {(document["state"], document["check_times"]) for document in decided} == {("COMMITTED", 1)}
    assert all("body" in entry for transaction in begun for entry in endpoint.about(transaction.transaction_id))


def test_a_message_that_is_too_large_for_a_server_is_asked_about_without_its_body(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    producer_endpoint.replies(takes_up_to(100_000))
    transaction = producer.begin(orders, b"x" * 200_000, keys=["order-1"])

    decided = eventually(partial(ended, wire, transaction.transaction_id))

    refused, entry = producer_endpoint.about(transaction.transaction_id)
    assert refused["body"] == "x" * 200_000
    assert (entry["body_omitted"], "body" in entry, entry["keys"], entry["check_times"]) == (
        True,
        False,
        ["order-1"],
        1,
    )
    assert (decided["state"], decided["check_times"], len(decided["history"])) == ("COMMITTED", 1, 3)


def test_a_server_that_refuses_every_size_loses_no_transaction(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    producer_endpoint.replies(takes_up_to(10))
    transaction = producer.begin(orders, b"order 1")

    def tried_in_vain() -> list[dict[str, object]] | None:
        checks = told(wire, transaction.transaction_id)["history"][1:]
        return checks if len(checks) > 3 else None

    checks = eventually(tried_in_vain)

    assert {(check["counted"], check["answer"], check["status"], check["reason"]) for check in checks} == {
        (
            False,
            None,
            413,
            "The endpoint answered 413: its server takes no request this large, not even without bodies; "
            "raise its limit.",
        )
    }
    assert told(wire, transaction.transaction_id)["state"] == "PREPARED"


def test_the_largest_message_is_asked_about_with_its_body(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    transaction = producer.begin(orders, LARGEST)

    decided = eventually(partial(ended, wire, transaction.transaction_id))

    [entry] = producer_endpoint.about(transaction.transaction_id)
    assert len(entry["body_base64"]) > len(LARGEST)
    assert (decided["state"], decided["check_times"]) == ("COMMITTED", 1)


def test_a_poll_is_bounded_in_bytes_and_the_next_one_gets_the_rest(
    broker: RunningBroker, wire: Wire, producer: Producer, orders: str, paused: str
) -> None:
    begun = {str(producer.begin(orders, BODY.encode()).transaction_id) for _ in range(5)}
    eventually(lambda: all(is_due(wire, transaction_id) for transaction_id in begun))
    Admin(broker.client()).create_producer_group(paused, checks_paused=False)
    polled: list[list[str]] = []

    def polls() -> bool:
        asked = {"max_transactions": 100, "wait_seconds": 10}
        found = wire.post(f"/v1/producer-groups/{paused}/checks/receive", asked).document["transactions"]
        polled.append([entry["transaction_id"] for entry in found])
        return begun <= {id_ for ids in polled for id_ in ids}

    eventually(polls)

    assert max(map(len, polled)) == 2


def is_due(wire: Wire, transaction_id: str) -> bool:
    return datetime.fromisoformat(told(wire, transaction_id)["next_check_at"]) < datetime.now(UTC)
