"""kill -9 of the worker in the middle of checks: every transaction is decided all the same, and once."""

import asyncio
import os
from collections.abc import Iterator

import pytest
from aiohttp import web
from mqbroker_client import Consumer, Producer

from tests.broker import databases
from tests.broker.characters import bodies, register
from tests.broker.endpoints import Asked, ProducerEndpoint, states
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import ended, received_until_empty
from tests.broker.wire import Wire

HALVES = 120


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker whose worker may be killed."""
    with databases.fresh() as database_url:
        broker = RunningBroker(tmp_path_factory.mktemp("broker"), database_url, os.environ["REDIS_URL"])
        broker.prepare()
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
