"""Producer groups over three cells: what waits for their decision, and how their endpoints fare, in all of them."""

from collections.abc import Sequence

from mqbroker_client import Producer

from tests.broker.cells import Cells
from tests.broker.endpoints import ProducerEndpoint, says
from tests.broker.polling import eventually
from tests.broker.wire import Document, Wire


def endpoint_of(wire: Wire, group: str) -> Document:
    """The one endpoint of a group."""
    [found] = wire.get(f"/v1/producer-groups/{group}/endpoints").document["results"]
    endpoint: Document = found
    return endpoint


def test_a_group_counts_its_transactions_in_every_cell_and_names_one_that_is_away(
    wire: Wire, cells: Cells, producer: Producer, spread: Sequence[str]
) -> None:
    for number, topic in enumerate(spread):
        for _ in range(number + 1):
            producer.begin(topic, b"half")

    whole = wire.get(f"/v1/producer-groups/{producer.group}").document
    with cells.away(2):
        part = wire.get(f"/v1/producer-groups/{producer.group}").document

    assert (whole["pending"], whole["missing"]) == (6, [])
    assert (part["pending"], part["missing"]) == (3, ["c2"])


def test_an_endpoint_is_shown_with_the_health_that_some_cell_has_of_it(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, spread: Sequence[str]
) -> None:
    producer_endpoint.replies(says(410, {}))
    producer.begin(spread[2], b"half", check_immunity_seconds=0)

    eventually(lambda: endpoint_of(wire, producer.group)["state"] == "disabled")

    changed = endpoint_of(wire, producer.group)
    path = f"/v1/producer-groups/{producer.group}/endpoints/{changed['id']}"
    assert wire.get(path).document["state"] == "disabled"
    assert wire.call("PUT", path, b'{"max_batch": 2}').document["state"] == "healthy"
    assert endpoint_of(wire, producer.group)["state"] == "healthy"
