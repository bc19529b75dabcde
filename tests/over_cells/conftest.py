"""One broker of three cells: their log offsets, segments and queue offsets are the same numbers."""

import os
from collections.abc import Iterator, Sequence

import pytest
from mqbroker_client import Admin

from tests.broker import characters
from tests.broker.cells import REFUSED_BY_GUARD, Cells, joined
from tests.broker.running import QUICK, RunningBroker
from tests.conftest import REDIS_URL


@pytest.fixture(scope="package")
def cells(prepared: str) -> Iterator[Cells]:
    """The databases of three cells."""
    with joined(prepared, 3) as found:
        yield found


@pytest.fixture(scope="package")
def broker(cells: Cells, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """In place of the other tests' broker: two web processes, a worker and beat, on three cells."""
    settings = {**QUICK, "MQBROKER_CONSOLE_READING_SECONDS": "0"}
    redis_url = os.environ.get("REDIS_URL", REDIS_URL)
    running = RunningBroker(tmp_path_factory.mktemp("cells"), cells.urls[0], redis_url, settings, webs=2)
    with running:
        yield running
        assert "Traceback" not in running.log(), "a process failed where it should have refused: see its log"
        assert REFUSED_BY_GUARD not in running.log(), "a session worked for two cells: see the log"


@pytest.fixture
def spread(cells: Cells, broker: RunningBroker) -> Sequence[str]:
    """A topic in each cell, by its number."""
    names = []
    for cell in range(3):
        cells.open(cell)
        names.append(characters.name(f"of-{cell}"))
        Admin(broker.client()).create_topic(names[-1], queues=2)
    return names
