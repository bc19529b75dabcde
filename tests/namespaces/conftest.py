"""Two teams on one broker, each with a namespace of its own and a key that is bound to it."""

import pytest

from tests.broker.running import RunningBroker
from tests.control.conftest import broker, operator, password
from tests.control.operators import Operator
from tests.namespaces.teams import Team

__all__ = ["broker", "operator", "password"]


@pytest.fixture
def ours(broker: RunningBroker, operator: Operator) -> Team:
    """A team."""
    return Team.of(broker, operator, "ours")


@pytest.fixture
def theirs(broker: RunningBroker, operator: Operator) -> Team:
    """Another team, whose topics and groups have the same names."""
    return Team.of(broker, operator, "theirs")
