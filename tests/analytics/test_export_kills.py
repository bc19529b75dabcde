"""Exports that are killed: what is read afterwards is whole, and nothing is there twice.

`MQ_KILLS=5 ./mq test tests/analytics/test_export_kills.py` kills it five times.
"""

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics import job
from analytics.errors import ExportDamaged
from analytics.files import manifest
from analytics.files.place import Local
from analytics.readers.adbc import AdbcSource
from tests.analytics import writers
from tests.analytics.conftest import start
from tests.analytics.kills import KILLS, kill, wait_until
from tests.analytics.parquet import rows
from tests.analytics.writers import Connection


def stored(connection: Connection) -> list[int]:
    """All log offsets that messages have."""
    found = connection.execute("SELECT log_offset FROM commit_log ORDER BY log_offset").fetchall()
    connection.rollback()
    return [offset for (offset,) in found]


# What an export has printed when it is killed.
POINTS = ("", "messages", "entries", "transactions", "timers")


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_an_export_that_is_killed_leaves_the_earlier_one_and_the_next_is_whole(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    target = tmp_path / "export"
    with writers.at_work(busy_database, threads=1):
        begin(spark, busy_database, Local(target))
        for point in POINTS[-KILLS:]:
            with start(busy_database, target) as export:
                await_point(export, target, point)
                kill(export)
            assert problems(busy_database, target) == []
    finish(busy_database, target)

    assert problems(busy_database, target) == []
    assert sorted(row["log_offset"] for row in rows(target / "messages")) == stored(writer)
    assert sorted(path.name for path in target.iterdir()) == sorted([manifest.NAME, *manifest.TABLES])


def begin(spark: SparkSession, database: str, to: Local) -> None:
    """A first export."""
    manifest.write(to, job.write(AdbcSource(spark, database), database, to, lambda counted: None))


def finish(database: str, target: Path) -> None:
    """An export that nothing disturbs."""
    with start(database, target) as export:
        _, said = export.communicate()
    assert (export.returncode, said) == (0, "")


def await_point(export: subprocess.Popen[str], target: Path, point: str) -> None:
    """Returns when the export has begun to write, or has printed a line of this table."""
    if not point:
        wait_until(lambda: target.with_name(".export.unfinished").joinpath("export").exists(), export)
    elif export.stdout:
        assert any(line.startswith(point) for line in export.stdout)


def problems(database: str, folder: Path) -> list[str]:
    """What a verification says."""
    said: list[str] = []
    with suppress(ExportDamaged):
        job.verify(database, Local(folder), said.append)
    return said
