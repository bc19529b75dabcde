"""The characters of the store's tests: a database of each test's own, and the keeper of its segments."""

import os
import subprocess
import sys
from collections.abc import Iterator

import django
import pytest

from tests.broker import databases
from tests.store.keeper import ROOT, Keeper


@pytest.fixture(scope="session")
def migrated() -> Iterator[str]:
    """The URL of a database with the broker's tables, which is copied and never used itself."""
    with databases.fresh() as url:
        words = [sys.executable, "manage.py", "migrate", "--skip-checks", "--verbosity=0"]
        subprocess.run(words, cwd=ROOT, env={**os.environ, "DATABASE_URL": url}, check=True)
        yield url


@pytest.fixture
def database_url(migrated: str) -> Iterator[str]:
    """The URL of a database with one segment, the first, and nothing in it."""
    with databases.copied(migrated) as url:
        yield url


@pytest.fixture
def keeper(database_url: str) -> Iterator[Keeper]:
    """The broker's own code on that database, and what it needs to be asked."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    django.setup()
    with Keeper(database_url) as keeper:
        yield keeper
