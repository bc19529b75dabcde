"""Push over cells: a subscription is shown with its health and its lag in the cell of its topic."""

from collections.abc import Sequence
from functools import partial

from mqbroker_client import Producer

from tests.broker import characters
from tests.broker.endpoints import ProducerEndpoint
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire
from tests.push.operators import Operator
from tests.push.servers import acks


def called(operator: Operator, name: str) -> Document | None:
    """The subscription once its server was called."""
    found = operator.sees(name)
    return found if found["last_success_at"] else None


def test_a_subscription_shows_the_calls_that_its_cell_makes(
    broker: RunningBroker, wire: Wire, endpoint: ProducerEndpoint, producer: Producer, spread: Sequence[str]
) -> None:
    operator = Operator(broker)
    endpoint.replies(acks())
    for topic in spread:
        name = characters.name("emails")
        operator.subscribes(name, topic, endpoint.url, paused=True)
        producer.send(topic, b"order")
        assert operator.sees(name)["lag"] == 1

        operator.changes(name, paused=False)

        seen = eventually(partial(called, operator, name))
        assert (seen["state"], seen["lag"]) == ("healthy", 0)
        [listed] = [one for one in wire.get("/v1/subscriptions?limit=200").document["results"] if one["name"] == name]
        assert listed["last_success_at"] == seen["last_success_at"]
