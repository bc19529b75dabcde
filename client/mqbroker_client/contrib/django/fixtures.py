"""Fixtures for pytest: `pytest_plugins = ["mqbroker_client.contrib.django.fixtures"]` in `conftest.py`."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import override_settings

from mqbroker_client.contrib.django.options import MEMORY
from mqbroker_client.contrib.django.outbox import broker
from mqbroker_client.core.connection import Broker


@pytest.fixture
def mqbroker() -> Iterator[Broker]:
    """The project's broker is within the process, a `MemoryBroker`, and empty in each test."""
    with override_settings(MQBROKER={**getattr(settings, "MQBROKER", {}), "URL": MEMORY}):
        yield broker()
