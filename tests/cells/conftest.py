"""The characters of the tests of cells."""

import os
from collections.abc import Iterator

import pytest

from tests.broker import databases
from tests.broker.running import RunningBroker
from tests.cells.installation import Installation


@pytest.fixture(scope="module")
def installation(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A broker that does not run yet, with the cells c0, which is the control, and c1."""
    with databases.copied(prepared) as control, databases.fresh() as other:
        folder = tmp_path_factory.mktemp("cells")
        found = Installation(RunningBroker(folder, control, os.environ["REDIS_URL"], tasks=False))
        found.add("c1", other)
        yield found
