"""The characters of the tests of cells."""

import os
from collections.abc import Iterator

import pytest

from tests.broker import databases
from tests.broker.running import API_KEY, RunningBroker
from tests.cells.installation import Installation
from tests.control.operators import Operator


@pytest.fixture(scope="module")
def installation(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A broker that does not run yet, with the cells c0, which is the control, and c1."""
    with databases.copied(prepared) as control, databases.fresh() as other:
        folder = tmp_path_factory.mktemp("cells")
        found = Installation(RunningBroker(folder, control, os.environ["REDIS_URL"], tasks=False))
        found.add("c1", other)
        yield found


@pytest.fixture(scope="module")
def operator(installation: Installation) -> Iterator[Operator]:
    """An operator's way to the broker of the installation, which runs meanwhile."""
    with installation.broker as broker:
        yield Operator(broker.url, API_KEY)
    assert "Traceback" not in broker.log()
