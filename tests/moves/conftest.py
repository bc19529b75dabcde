"""The characters of the tests of moves: an installation whose server has standbys, and a broker on it."""

from collections.abc import Iterator

import pytest

from tests.broker import cells
from tests.broker.running import RunningBroker
from tests.moves.ground import Ground


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """The servers and databases."""
    made = Ground(tmp_path_factory.mktemp("ground"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def broker(ground: Ground) -> Iterator[RunningBroker]:
    """In place of the other tests' broker: two web processes, a worker and beat, on the cells of the ground."""
    with ground.broker as running:
        yield running
        assert "Traceback" not in running.log(), "a process failed where it should have refused: see its log"
        assert cells.REFUSED_BY_GUARD not in running.log(), "a session worked for two cells: see the log"
