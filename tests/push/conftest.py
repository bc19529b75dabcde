"""The characters of push: a subscription's server, and an operator, who subscribes it."""

from collections.abc import Iterator

import pytest

from tests.broker import characters
from tests.broker.endpoints import ProducerEndpoint
from tests.broker.running import RunningBroker
from tests.push.operators import Operator
from tests.push.servers import acks


@pytest.fixture
def operator(broker: RunningBroker) -> Operator:
    """An operator with the first key."""
    return Operator(broker)


@pytest.fixture
def name() -> str:
    """A subscription that no other test has."""
    return characters.name("emails")


@pytest.fixture
def topic(operator: Operator) -> str:
    """A topic that is there."""
    topic = characters.name("orders")
    operator.does("PUT", f"/v1/topics/{topic}")
    return topic


@pytest.fixture
def server() -> Iterator[ProducerEndpoint]:
    """A server that acks whatever comes."""
    with ProducerEndpoint() as server:
        server.replies(acks())
        yield server
