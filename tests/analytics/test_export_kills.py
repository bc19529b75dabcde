"""Exports and streams that are killed: what is read afterwards is whole, and nothing is there twice.

`MQ_KILLS=5 ./mq test --all tests/analytics/test_export_kills.py` kills each five times.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics.files import manifest
from analytics.files.place import Local
from tests.analytics import exports, streaming, writers
from tests.analytics.conftest import ROOT, done, start
from tests.analytics.kills import KILLS, Ended, kill, kill_while, wait_until
from tests.analytics.writers import Connection

# Spark gives the Python of a stream ten seconds to start, which are too few on a busy machine.
TOO_SLOW = "Python worker failed to connect back"


@contextmanager
def stream(url: str, folder: Path, options: Mapping[str, str | int]) -> Iterator[subprocess.Popen[str]]:
    """A stream in a process of its own, which does not outlive the block."""
    words = [f"{name}={value}" for name, value in options.items()]
    command = [sys.executable, "-m", "tests.analytics.streaming", url, str(folder), *words]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        kill(process)


def batches(folder: Path, of: str) -> set[int]:
    """The batches of a checkpoint that were begun (`offsets`), or ended (`commits`)."""
    return {int(path.name) for path in (folder / "checkpoint" / of).glob("[0-9]*")}


def is_within_a_batch(folder: Path, known: set[int], *, has_written: bool) -> bool:
    """Whether another batch than the known ones was begun and not ended, and has files in the sink by now."""
    begun = batches(folder, "offsets") - batches(folder, "commits") - known
    if not begun or not has_written:
        return bool(begun)
    since = (folder / "checkpoint" / "offsets" / str(max(begun))).stat().st_mtime
    return any(file.stat().st_mtime >= since for file in (folder / "files").glob("*.parquet"))


def kill_within_a_batch(url: str, folder: Path, options: Mapping[str, str | int], *, has_written: bool) -> None:
    """Streams from where the checkpoint stands, until it is killed within a batch of its own."""
    while True:
        known = batches(folder, "offsets")
        try:
            with stream(url, folder, options) as process:
                kill_while(partial(is_within_a_batch, folder, known, has_written=has_written), process)
        except Ended as ended:
            if TOO_SLOW not in str(ended):
                raise
        else:
            return


def stored(connection: Connection) -> list[int]:
    """All log offsets that messages have."""
    found = connection.execute("SELECT log_offset FROM commit_log ORDER BY log_offset").fetchall()
    connection.rollback()
    return [offset for (offset,) in found]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_a_stream_that_is_killed_within_batches_has_each_message_once(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    # Some slices a batch, and not one for each message that came while the processes started.
    options: dict[str, str | int] = {"table": "messages", "rows_per_slice": 500}
    with writers.at_work(busy_database, threads=1):
        for number in range(KILLS):
            kill_within_a_batch(busy_database, tmp_path, options, has_written=number % 2 == 1)

    streaming.to_files(streaming.frame(spark, busy_database, **options), tmp_path)

    read = spark.read.parquet(str(tmp_path / "files")).select("log_offset").collect()
    assert sorted(row["log_offset"] for row in read) == stored(writer)
    assert len(read) > 0


# What an export has printed when it is killed.
POINTS = ("", "messages", "entries", "transactions", "timers")


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_an_export_that_is_killed_leaves_the_earlier_one_and_the_next_is_whole(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    target = tmp_path / "export"
    place = Local(target)
    with writers.at_work(busy_database, threads=1):
        exports.write(spark, busy_database, target)
        for point in POINTS[-KILLS:]:
            with start(busy_database, target) as export:
                await_point(export, target, point)
                kill(export)
            assert exports.problems(busy_database, place) == []
    finish(busy_database, target)

    assert exports.problems(busy_database, place) == []
    assert [row["log_offset"] for row in exports.messages(target)] == stored(writer)
    assert sorted(path.name for path in target.iterdir()) == sorted([manifest.NAME, *manifest.TABLES])


def finish(database: str, target: Path) -> None:
    """An export that nothing disturbs."""
    export = done(database, target)
    assert (export.returncode, export.stderr) == (0, "")


def await_point(export: subprocess.Popen[str], target: Path, point: str) -> None:
    """Returns when the export has begun to write, or has printed a line of this table."""
    if not point:
        wait_until(lambda: target.with_name(".export.unfinished").joinpath("export").exists(), export)
    elif export.stdout:
        assert any(line.startswith(point) for line in export.stdout)
