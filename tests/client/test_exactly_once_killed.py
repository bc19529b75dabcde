"""`exactly_once` holds for consumers that are killed at the worst moments, on each database."""

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from mqbroker_client import Admin, Message, Producer
from mqbroker_client.barrier.inbox import Inbox

from mqbroker.embedded.commands import ROOT
from tests.barrier import mariadb, places, processes
from tests.barrier.places import Place
from tests.broker import forks
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker

pytestmark = pytest.mark.chaos

MOMENTS = ("before the commit", "before the ack")
DEATHS = [f"{moment} {number}" for moment in MOMENTS for number in range(2)]
BODIES = [*DEATHS, *(f"calm {number}" for number in range(20))]


@pytest.fixture(
    params=[
        "postgresql",
        pytest.param("mariadb", marks=pytest.mark.long),
        pytest.param("sqlite", marks=pytest.mark.long),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A consumer's database, with payments and an inbox."""
    if request.param == "sqlite":
        yield made(places.sqlite(tmp_path))
    elif request.param == "mariadb":
        with mariadb.running(tmp_path / "mariadb") as server, places.of_mariadb(server) as found:
            yield made(found)
    else:
        with places.postgresql("read committed") as found:
            yield made(found)


def made(place: Place) -> Place:
    place.run("CREATE TABLE payments (body varchar(36))")
    Inbox("payments", place.connect).create_table()
    return place


def payments_after_all_deaths(way: str, place: Place, broker: RunningBroker, topic: str, folder: Path) -> Counter[str]:
    """How often each message had its effect. A consumer that was killed is followed by another one."""
    Admin(broker.client()).create_consumer_group(topic)
    Producer(broker.client(), topic).send_batch(topic, [Message(topic, body.encode()) for body in BODIES])
    words = [sys.executable, "-m", "tests.client.killed_consumer", way, broker.url, place.url, topic, str(folder)]
    program = forks.ForkedChild("consumer", words, processes.environment(), folder / "consumer.log", ROOT)
    try:
        for _ in DEATHS:
            program.start()
            assert program.wait(120)
            assert program.returncode == -signal.SIGKILL, program.last_lines()
        program.start()
        eventually(lambda: all_came_again(folder) and payments(place).keys() == set(BODIES), within_seconds=60)
        program.ask_to_stop()
        assert program.wait(120)
        assert program.returncode == 0, program.last_lines()
    finally:
        program.kill()
    return payments(place)


def all_came_again(folder: Path) -> bool:
    """Whether each message that killed a consumer was handled once more."""
    return all((folder / f"again {death}").exists() for death in DEATHS)


def payments(place: Place) -> Counter[str]:
    """How many payments each message has made."""
    return Counter(body for (body,) in place.run("SELECT body FROM payments"))


def test_each_effect_is_there_once_after_every_kill(
    place: Place, broker: RunningBroker, orders: str, tmp_path: Path
) -> None:
    assert payments_after_all_deaths("inbox", place, broker, orders, tmp_path) == Counter(BODIES)


def test_without_an_inbox_a_kill_before_the_ack_doubles_the_effect(
    broker: RunningBroker, orders: str, tmp_path: Path
) -> None:
    place = made(places.sqlite(tmp_path))

    found = payments_after_all_deaths("mutant", place, broker, orders, tmp_path)

    assert min(found["before the ack 0"], found["before the ack 1"]) >= 2
