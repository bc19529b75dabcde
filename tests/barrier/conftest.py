"""The characters of the barrier's tests: the databases of producers."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.barrier import places, processes
from tests.barrier.places import Place
from tests.broker import forks
from tests.broker.running import RunningBroker

PLACES = ("read committed", "repeatable read", "serializable", "mariadb", "sqlite")
SHORT_PLACES = {"read committed", "serializable", "mariadb", "sqlite"}
BINDINGS = ("driver", "django", "sqlalchemy", "asyncio", "async producer")
# Asynchronous drivers are a matter of the binding, not of the place: two of them do. For MariaDB there is none here.
EVERY_PAIR = [
    (binding, place)
    for place in PLACES
    for binding in BINDINGS
    if not binding.startswith("async")
    or place in ("read committed", "sqlite")
    or (binding == "async producer" and place != "mariadb")
]
# Each place with the driver, and each binding with one place or two: the other pairs only vary these.
SHORT_PAIRS = {
    *(("driver", place) for place in PLACES),
    ("django", "read committed"),
    ("django", "mariadb"),
    ("sqlalchemy", "sqlite"),
    ("asyncio", "read committed"),
    ("async producer", "sqlite"),
}
PAIRS = [pytest.param(pair, marks=() if pair in SHORT_PAIRS else pytest.mark.long) for pair in EVERY_PAIR]


@dataclass(frozen=True)
class Shop:
    """A producer: its database, and the binding by which its programs use it."""

    binding: str
    place: Place
    broker: RunningBroker
    program: processes.Program


@pytest.fixture(
    scope="module",
    params=[place if place in SHORT_PLACES else pytest.param(place, marks=pytest.mark.long) for place in PLACES],
)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A producer's database, with the barrier's table."""
    yield from place_of(request.param, request, tmp_path_factory.mktemp("place"), "driver")


@pytest.fixture(scope="module", params=PAIRS, ids=lambda pair: "-".join(pair).replace(" ", "_"))
def shop(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, broker: RunningBroker
) -> Iterator[Shop]:
    """A producer, on every database by every binding."""
    binding, name = request.param
    folder = tmp_path_factory.mktemp("place")
    for place in place_of(name, request, folder, binding):
        with processes.program(binding, place, broker, folder) as program:
            yield Shop(binding, place, broker, program)


@pytest.fixture
def process(shop: Shop) -> Iterator[processes.Process]:
    """A process of the producer, which a test may kill."""
    with shop.program.process() as process:
        yield process


def place_of(name: str, request: pytest.FixtureRequest, folder: Path, binding: str) -> Iterator[Place]:
    """One of PLACES, with the barrier's table as the binding makes it."""
    if name == "sqlite":
        made = places.sqlite(folder)
        make_barrier(made, binding)
        yield made
        return
    server = request.getfixturevalue("mariadb_server") if name == "mariadb" else None
    with places.of_mariadb(server) if server else places.postgresql(name) as made:
        make_barrier(made, binding)
        yield made


def make_barrier(place: Place, binding: str) -> None:
    if binding != "django":
        place.barrier.create_table()
        return
    words = [sys.executable, "-m", "tests.barrier.site", place.words(), "http://127.0.0.1:1", "migrate", "-v", "0"]
    done = forks.run(words, processes.environment())
    assert done.returncode == 0, done.stderr
