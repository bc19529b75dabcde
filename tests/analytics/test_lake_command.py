"""`./mq lake`: it adds what is committed until it is stopped, adds all at once, and verifies."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.analytics import lakes
from tests.analytics.conftest import ROOT
from tests.analytics.test_export_committed import fill
from tests.analytics.writers import Connection


def started(database: str, *words: str | Path) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "manage.py", "lake", *map(str, words)],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def done(database: str, *words: str | Path) -> tuple[int, str, str]:
    """The status of a finished command, and what it said."""
    with started(database, *words) as process:
        out, err = process.communicate()
    return process.returncode, out, err


def test_the_lake_goes_on_until_it_is_stopped_and_the_next_start_continues_it(
    busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    fill(writer, 9)
    with started(busy_database, "--to", folder, "--every", "2") as process:
        assert process.stdout is not None
        said = [process.stdout.readline()]
        fill(writer, 9)
        said.append(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    fill(writer, 9)

    once = done(busy_database, "--to", folder, "--compact", "--once")
    verified = done(busy_database, "--verify", folder)

    assert said == ["Batch 1: 6 messages.\n", "Batch 2: 6 messages.\n"]
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
