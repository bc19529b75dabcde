"""The characters of messages that are made of deliveries."""

import pytest
from mqbroker_client import Consumer

from tests.broker import characters
from tests.broker.running import RunningBroker


@pytest.fixture
def paid() -> str:
    """The topic that a consumer of orders sends to."""
    return characters.name("paid")


@pytest.fixture
def later(broker: RunningBroker) -> Consumer:
    """A consumer behind the first one."""
    return Consumer(broker.client(), characters.name("shipping"))
