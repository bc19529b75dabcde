"""The characters of the store's tests: a database of each test's own, and the keeper of its segments."""

import os
from collections.abc import Iterator

import django
import pytest

from tests.broker import databases
from tests.store.keeper import Keeper


@pytest.fixture
def database_url(prepared: str) -> Iterator[str]:
    """The URL of a database with one segment, the first, and nothing in it."""
    with databases.copied(prepared) as url:
        yield url


@pytest.fixture
def keeper(database_url: str) -> Iterator[Keeper]:
    """The broker's own code on that database, and what it needs to be asked."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    django.setup()
    with Keeper(database_url) as keeper:
        yield keeper
