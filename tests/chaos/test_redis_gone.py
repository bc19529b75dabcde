"""Redis gone from the start: messages and decisions go their way all the same, and what is due is late by seconds."""

from collections.abc import Iterator
from functools import partial

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker import databases
from tests.broker.characters import bodies
from tests.broker.endpoints import ProducerEndpoint, states
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.running import QUICK, RunningBroker
from tests.broker.tellings import told
from tests.broker.wire import Wire


@pytest.fixture(scope="module")
def broker(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with a worker and beat that find no Redis."""
    with databases.copied(prepared) as database_url:
        no_redis = f"redis://127.0.0.1:{free_port()}/0"
        settings = QUICK | {"MQBROKER_TRANSACTION_CHECK_MAX": "1"}
        broker = RunningBroker(tmp_path_factory.mktemp("broker"), database_url, no_redis, settings)
        with broker:
            yield broker


def test_messages_are_sent_decided_received_and_acked_as_ever(
    producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    producer.begin(orders, b"order 2").commit()
    producer.begin(orders, b"order 3").rollback()

    deliveries = consumer.receive(orders)

    assert sorted(bodies(deliveries)) == [b"order 1", b"order 2"]
    assert [settled.status for settled in consumer.ack(deliveries)] == [200, 200]


def test_what_is_due_is_late_by_seconds_and_not_stopped(
    wire: Wire, producer: Producer, consumer: Consumer, producer_endpoint: ProducerEndpoint, orders: str, coupons: str
) -> None:
    producer_endpoint.replies(states(lambda entry: entry["keys"][0]))
    halves = {
        decision: producer.begin(coupons, decision.encode(), keys=[decision])
        for decision in ("COMMIT", "ROLLBACK", "UNKNOWN")
    }
    producer.send(orders, b"order 1", delay_level=1)
    producer.send(orders, b"order 2", delay_seconds=1)

    seen: list[bytes] = []
    while len(seen) < 4:
        # Each of them comes twice, because the first delivery is not acked.
        seen += bodies(eventually(partial(consumer.receive, orders, invisible_seconds=1)))

    def decided() -> dict[str, str]:
        return {decision: told(wire, half.transaction_id)["state"] for decision, half in halves.items()}

    expected = {"COMMIT": "COMMITTED", "ROLLBACK": "ROLLED_BACK", "UNKNOWN": "DISCARDED"}
    eventually(lambda: decided() == expected)
    assert sorted(seen) == [b"order 1", b"order 1", b"order 2", b"order 2"]
    assert bodies(consumer.receive(coupons)) == [b"COMMIT"]
