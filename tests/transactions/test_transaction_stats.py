"""Stats: the metrics of checks and decisions are what happened to transactions."""

import urllib.request

import pytest
from mqbroker_client import Producer

from tests.broker.endpoints import ProducerEndpoint, states
from tests.broker.polling import eventually
from tests.broker.tellings import ended
from tests.broker.wire import Wire

UNDECIDED = "mqbroker_half_to_end_seconds"


def samples(wire: Wire) -> dict[str, float]:
    """The metrics, each with its labels as Prometheus writes them."""
    request = urllib.request.Request(f"{wire.url}/metrics", headers={"Authorization": f"Bearer {wire.api_key}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(number) for name, _, number in pairs}


@pytest.mark.one_cell(because="/metrics reads the control", control=True)
def test_a_check_that_decides_is_counted_and_its_transaction_is_timed(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    producer_endpoint.replies(states("COMMIT"))
    before = samples(wire)
    transaction = producer.begin(orders, b"order 1")

    eventually(lambda: ended(wire, transaction.transaction_id))

    decided = 'mqbroker_checks_last_hour{outcome="decided"}'
    after = samples(wire)
    assert after[decided] >= before[decided] + 1
    assert 0 <= after[f'{UNDECIDED}{{quantile="0.5"}}'] <= after[f'{UNDECIDED}{{quantile="0.99"}}']
