"""`./mq lake`: it adds what is committed until it is stopped, adds all at once, and verifies."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from analytics.export.lake.job import Lake
from tests.analytics import lakes
from tests.analytics.conftest import ROOT
from tests.analytics.test_export_committed import fill
from tests.analytics.writers import Connection
from tests.broker import forks


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "manage.py", "lake", *map(str, words)]


def done(database: str, *words: str | Path) -> tuple[int, str, str]:
    """The status of a finished command, and what it said."""
    process = forks.run(command(*words), {**os.environ, "DATABASE_URL": database})
    return process.returncode, process.stdout, process.stderr


def test_the_lake_goes_on_until_it_is_stopped(busy_database: str, writer: Connection, tmp_path: Path) -> None:
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 3:
            raise KeyboardInterrupt
        fill(writer, 9)

    fill(writer, 9)
    with pytest.raises(KeyboardInterrupt):
        Lake(busy_database, tmp_path / "lake", say).keep(every_seconds=0.01)

    assert said == [f"Batch {number}: 6 messages." for number in (1, 2, 3)]
    assert len(lakes.rows(tmp_path / "lake")) == 18


def test_a_lake_that_was_stopped_is_continued_by_the_next_start(
    busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    fill(writer, 9)
    lakes.caught_up(busy_database, folder)
    fill(writer, 9)
    pipe, environ = subprocess.PIPE, {**os.environ, "DATABASE_URL": busy_database}
    with subprocess.Popen(
        command("--to", folder), cwd=ROOT, env=environ, stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    fill(writer, 9)

    once = done(busy_database, "--to", folder, "--compact", "--once")
    verified = done(busy_database, "--verify", folder)

    assert said == "Batch 2: 6 messages.\n"
    assert (process.returncode, err) == (130, "CommandError: The lake was stopped; the next start continues it.\n")
    assert once == (0, "2 files merged into 1.\nBatch 3: 6 messages.\n", "")
    assert verified == (0, f"Verified {folder}.\n", "")
    assert len(lakes.rows(folder)) == 18


def test_a_verification_of_no_lake_and_a_time_that_is_none_are_refused(busy_database: str, tmp_path: Path) -> None:
    verified = done(busy_database, "--verify", tmp_path)
    timed = done(busy_database, "--to", tmp_path, "--every", "soon")

    assert verified == (
        1,
        "",
        f"CommandError: {tmp_path} holds no lake: `./mq lake --to DIR` makes one in a new or an empty folder. "
        "(folder_refused)\n",
    )
    assert timed[0] == 2
    assert "soon is no time between commits: give seconds, from 2 to 86400." in timed[2]
