"""A worker killed or stopped in the middle of checks: every transaction is decided all the same, and once."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from aiohttp import web
from mqbroker_client import Consumer, Producer

from tests.broker import databases
from tests.broker.characters import bodies, register
from tests.broker.endpoints import Asked, ProducerEndpoint, silence, states
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import ended, received_until_empty, told
from tests.broker.wire import Wire
from transactions.checks.claims import CLAIM_SECONDS

HALVES = 120


@pytest.fixture(scope="module")
def broker(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker whose worker may be killed."""
    with databases.copied(prepared) as database_url:
        broker = RunningBroker(tmp_path_factory.mktemp("broker"), database_url, os.environ["REDIS_URL"])
        with broker:
            yield broker


async def slowly(asked: Asked) -> web.StreamResponse:
    """Commits every second order, after a while."""
    await asyncio.sleep(0.3)
    return await states(lambda entry: "COMMIT" if int(entry["keys"][0]) % 2 else "ROLLBACK")(asked)


def test_checks_that_a_killed_worker_had_begun_are_asked_again(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, endpoint: ProducerEndpoint, orders: str
) -> None:
    register(broker, producer.group, endpoint.url)
    endpoint.replies(slowly)
    half = {"op": "half", "topic": orders, "producer_group": producer.group}

    begun = wire.bulk(*({**half, "body": f"order {number}", "keys": [str(number)]} for number in range(HALVES)))
    eventually(lambda: endpoint.asked)
    broker.worker.kill()
    asked_before = len(endpoint.asked)
    broker.worker.start()

    ids = [result["transaction_id"] for result in begun]
    eventually(lambda: all(ended(wire, transaction_id) for transaction_id in ids), within_seconds=60)
    assert 0 < asked_before < HALVES
    committed = sorted(f"order {number}".encode() for number in range(HALVES) if number % 2)
    assert sorted(bodies(received_until_empty(consumer, orders))) == committed


def test_a_worker_that_was_stopped_in_the_middle_of_checks_changes_nothing_when_it_goes_on(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, endpoint: ProducerEndpoint, orders: str
) -> None:
    register(broker, producer.group, endpoint.url)
    endpoint.replies(slowly)
    half = {"op": "half", "topic": orders, "producer_group": producer.group}

    begun = wire.bulk(*({**half, "body": f"order {number}", "keys": [str(number)]} for number in range(HALVES)))
    ids = [result["transaction_id"] for result in begun]
    eventually(lambda: endpoint.asked)
    os.killpg(broker.worker.pid, signal.SIGSTOP)
    try:
        eventually(lambda: all(ended(wire, transaction_id) for transaction_id in ids), within_seconds=60)
        outcomes = [told(wire, transaction_id)["state"] for transaction_id in ids]
    finally:
        os.killpg(broker.worker.pid, signal.SIGCONT)
    # It goes on: half messages that are begun now are ended by its checks, or by those of the fallback.
    later = wire.bulk({**half, "body": "order 1000", "keys": ["1000"]})
    eventually(lambda: ended(wire, later[0]["transaction_id"]), within_seconds=60)

    stories = [told(wire, transaction_id) for transaction_id in ids]
    asked = Counter(entry["transaction_id"] for call in endpoint.asked for entry in call.transactions)
    assert [story["state"] for story in stories] == outcomes
    assert outcomes == ["COMMITTED" if number % 2 else "ROLLED_BACK" for number in range(HALVES)]
    for story in stories:
        checks = [event for event in story["history"] if event["event"] == "check" and event["counted"]]
        assert len(checks) <= asked[story["transaction_id"]]
    committed = sorted(f"order {number}".encode() for number in range(HALVES) if number % 2)
    assert sorted(bodies(received_until_empty(consumer, orders))) == committed


def test_a_killed_worker_delays_its_checks_by_15_seconds_at_most(
    broker: RunningBroker, producer: Producer, endpoint: ProducerEndpoint, orders: str
) -> None:
    """However many endpoints the group has, and however long each of them may take."""
    for path in ("", "/second", "/third"):
        register(broker, producer.group, endpoint.url + path, timeout_seconds=30)
    endpoint.replies(silence(60), states("COMMIT"))
    transaction = producer.begin(orders, b"order")
    eventually(lambda: endpoint.about(transaction.transaction_id), within_seconds=10)

    broker.worker.kill()
    killed_at = time.monotonic()
    broker.worker.start()

    eventually(lambda: len(endpoint.about(transaction.transaction_id)) > 1, within_seconds=30)
    assert time.monotonic() - killed_at <= at_this_load(15)


def test_a_producer_that_takes_its_time_is_asked_once_meanwhile(
    broker: RunningBroker, wire: Wire, producer: Producer, endpoint: ProducerEndpoint, orders: str
) -> None:
    """The claim is renewed while the call lasts."""
    register(broker, producer.group, endpoint.url, timeout_seconds=30)

    async def deliberates(asked: Asked) -> web.StreamResponse:
        await asyncio.sleep(CLAIM_SECONDS + 6)
        return await states("COMMIT")(asked)

    endpoint.replies(deliberates)
    transaction = producer.begin(orders, b"order")

    eventually(lambda: ended(wire, transaction.transaction_id), within_seconds=30)

    assert told(wire, transaction.transaction_id)["state"] == "COMMITTED"
    assert len(endpoint.about(transaction.transaction_id)) == 1
