"""Beat and a worker release what is due within a second; without the ticks of `scheduling.release` it takes seconds."""

import os
import statistics
from pathlib import Path

import psycopg
import pytest

from mqbroker.celery.app import app
from mqbroker.embedded.commands import ROOT, beat, python
from tests.broker import cells, forks
from tests.broker.polling import eventually
from tests.broker.running import QUICK, RunningBroker
from tests.broker.tellings import visible_at
from tests.scheduling.test_levels import due, send

# Longer than a process that stores a delay sets an alarm for; the second delay level, and a timer.
DELAYS = ({"delay_level": 2}, {"delay_seconds": 5})
# A worker's heartbeat is a task that beat sends: by the first of them, both have started.
HEARTBEAT = "SELECT EXISTS (SELECT 1 FROM heartbeat WHERE kind = 'worker')"


def lateness_seconds(prepared: str, folder: Path, command: list[str]) -> list[float]:
    """How late messages with a delay of 5 s are visible while web, worker and this beat run."""
    settings = QUICK | {"MQBROKER_DELAY_LEVELS": "1s 5s"}
    with (
        cells.installation(prepared) as url,
        RunningBroker(folder, url, os.environ["REDIS_URL"], settings, tasks=False) as web,
    ):
        tasks = [web.worker, forks.ForkedChild("beat", command, web.environment, folder / "beat.log", ROOT)]
        for child in tasks:
            child.start()
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                eventually(lambda: connection.execute(HEARTBEAT).fetchone() == (True,), within_seconds=60)
            wire = web.wire()
            sent = [send(wire, "orders", queue=0, **delay) for delay in DELAYS for _ in range(4)]
            return [(visible_at(wire, one["message_id"]) - due(one)).total_seconds() for one in sent]
        finally:
            for child in tasks:
                child.stop()


@pytest.mark.timeout(120)
def test_a_delay_of_five_seconds_ends_within_a_second(prepared: str, tmp_path: Path) -> None:
    late = lateness_seconds(prepared, tmp_path, beat(tmp_path / "schedule"))

    assert min(late) >= 0
    assert statistics.median(late) < 1, late


@pytest.mark.timeout(120)
def test_without_the_ticks_of_its_release_a_delay_ends_later_than_that(prepared: str, tmp_path: Path) -> None:
    others = ",".join(app.conf.beat_schedule.keys() - {"scheduling.release"})
    words = ["-m", "tests.scheduling.beats", "--tasks", others, "--schedule", str(tmp_path / "schedule")]

    late = lateness_seconds(prepared, tmp_path, python(*words))

    assert statistics.median(late) > 1, "the measure would pass without the ticks"
