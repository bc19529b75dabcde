"""Two teams on one broker, each with a namespace of its own and a key that is bound to it."""

import os
from collections.abc import Iterator

import pytest

from tests.broker import cells
from tests.broker.running import RunningBroker
from tests.control.conftest import SETTINGS, operator, password
from tests.control.operators import Operator
from tests.namespaces.teams import Team

__all__ = ["operator", "password"]


@pytest.fixture(scope="package")
def broker(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Two web processes, a worker and beat, whose half messages stay undecided until a test ends them."""
    redis_url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
    with cells.installation(prepared) as database_url:
        folder = tmp_path_factory.mktemp("namespaces")
        with RunningBroker(folder, database_url, redis_url, SETTINGS, webs=2) as running:
            yield running


@pytest.fixture
def ours(broker: RunningBroker, operator: Operator) -> Team:
    """A team."""
    return Team.of(broker, operator, "ours")


@pytest.fixture
def theirs(broker: RunningBroker, operator: Operator) -> Team:
    """Another team, whose topics and groups have the same names."""
    return Team.of(broker, operator, "theirs")
