"""Stats: the metrics of checks and decisions are what happened to transactions."""

from mqbroker_client import Producer

from tests.broker import metrics
from tests.broker.endpoints import ProducerEndpoint, states
from tests.broker.polling import eventually
from tests.broker.tellings import ended
from tests.broker.wire import Wire

UNDECIDED = "mqbroker_half_to_end_seconds"


def test_a_check_that_decides_is_counted_and_its_transaction_is_timed(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    producer_endpoint.replies(states("COMMIT"))
    before = metrics.read(wire.url)
    transaction = producer.begin(orders, b"order 1")

    eventually(lambda: ended(wire, transaction.transaction_id))

    decided = "mqbroker_checks_last_hour", "decided"
    after = metrics.read(wire.url)
    assert after[decided] >= before[decided] + 1
    assert 0 <= after[UNDECIDED, "0.5"] <= after[UNDECIDED, "0.99"]
