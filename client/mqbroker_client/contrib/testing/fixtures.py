"""Fixtures for pytest."""

from collections.abc import Iterator

import pytest

from mqbroker_client.contrib.testing.memory import MemoryBroker


@pytest.fixture
def mqbroker() -> Iterator[MemoryBroker]:
    """A broker inside the process, empty in each test."""
    with MemoryBroker() as broker:
        yield broker
