"""Promises of what is kept of an endpoint's answers: the last one, and how many in a row decided nothing."""

from mqbroker_client import Producer

from tests.broker.endpoints import ProducerEndpoint, says, states
from tests.broker.polling import eventually
from tests.broker.wire import Document, Wire
from tests.transactions.test_check_answers import VOID


def endpoint_of(wire: Wire, group: str) -> Document:
    """The only endpoint of a group, as the API shows it."""
    [found] = wire.get(f"/v1/producer-groups/{group}/endpoints").document["results"]
    return dict(found)


def test_answers_that_decide_nothing_are_counted_until_one_is_understood(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    producer_endpoint.replies(says(200, {"ok": True}))
    producer.begin(orders, b"order 1")

    void = eventually(lambda: found if (found := endpoint_of(wire, producer.group))["void_answers"] else None)

    assert (void["state"], void["last_failure"], void["last_success_at"]) == ("healthy", None, None)
    assert void["last_answer"] == f'{VOID} {{"ok": true}}'
    assert void["void_since"] is not None

    producer_endpoint.replies(states("COMMIT"))

    mended = eventually(lambda: found if not (found := endpoint_of(wire, producer.group))["void_answers"] else None)
    assert (mended["last_answer"], mended["void_since"]) == ("200, COMMIT", None)
    assert mended["last_success_at"] is not None


def test_a_change_by_an_operator_forgets_the_void_answers(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    producer_endpoint.replies(says(204))
    producer.begin(orders, b"order 1", check_immunity_seconds=1)
    eventually(lambda: endpoint_of(wire, producer.group)["void_answers"])
    producer_endpoint.replies(states("UNKNOWN"))

    wire.post(f"/v1/producer-groups/{producer.group}/endpoints", {"url": producer_endpoint.url, "max_batch": 2})

    assert endpoint_of(wire, producer.group)["void_answers"] == 0
