"""The characters of the permutations: the broker's own code on a database of theirs, and a session that watches it."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import django
import psycopg
import pytest

from store.db import event_loop
from tests.broker import databases
from tests.simulated.permutations import exploring, stage
from tests.simulated.permutations.exploring import Scenario
from tests.store.keeper import Keeper

LIMIT_SECONDS = 600

Make = Callable[[psycopg.Connection[Any]], Scenario]
Play = Callable[[Make], int]


@pytest.fixture(scope="module")
def played(prepared: str) -> Iterator[Play]:
    """Plays every interleaving of a scenario and prints how many there are; returns that number."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    django.setup()
    with (
        databases.copied(prepared) as url,
        psycopg.connect(url, autocommit=True, application_name="mqbroker-move") as watch,
        Keeper(url),
    ):
        watch.execute(stage.VIRTUAL_TIME.encode())

        def play(make: Make) -> int:
            async def explored() -> Any:
                scenario = make(watch)
                return await exploring.explore(scenario, watch)

            outcomes = event_loop.run(explored(), LIMIT_SECONDS)
            print(*(f"{count:6} × {outcome}" for outcome, count in sorted(outcomes.items())), sep="\n")
            return int(outcomes.total())

        yield play
