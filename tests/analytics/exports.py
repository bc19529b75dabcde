"""Exports by the Spark that the tests share, and what is said of them."""

from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from analytics.errors import ExportDamaged
from analytics.export import job
from analytics.files import manifest, noted
from analytics.files.folder import workspace
from analytics.files.hadoop import Place
from analytics.files.manifest import Manifest, Reached
from analytics.files.place import Local
from analytics.readers.adbc import AdbcSource
from analytics.readers.opening import Wishes
from tests.analytics.parquet import Row, rows

HEAVIEST = 4 * 1024 * 1024


def write(spark: SparkSession, database: str, folder: Path, earlier: Path | None = None) -> Path:
    """An export to a new folder, beside the earlier one that it goes on from."""
    source, place, before = AdbcSource(spark, database), Local(folder), Local(earlier) if earlier else None
    manifest.write(place, job.write(source, database, place, lambda counted: None, before))
    return folder


def replace(spark: SparkSession, database: str, folder: Path, format: str = "parquet") -> str | None:
    """What `./mq export --to DIR --format` does, in a Spark that is there; the reason where it could not be noted."""
    wishes = Wishes("source", "", HEAVIEST, str(folder), format=format)
    with workspace(folder) as unfinished:
        made = job.export(spark, database, folder, unfinished, wishes, lambda counted: None)
    return noted.note(database, wishes.noted_as, made)


def nothing(database: str) -> Manifest:
    """The list of an export without a row, with its time in another zone than UTC."""
    return Manifest(
        database=database,
        taken_at="2026-03-01T13:00:00+01:00",
        rows=dict.fromkeys(manifest.TABLES, 0),
        ends=Reached(0, -1, -1, []),
        holes=[],
        unused=[],
        parts=[],
    )


def listed(place: Place) -> Manifest:
    """The list of an export's files."""
    found = manifest.read(place)
    assert found is not None
    return found


def problems(database: str, place: Place) -> list[str]:
    """What a verification says."""
    said: list[str] = []
    with suppress(ExportDamaged):
        job.verify(database, place, said.append)
    return said


def messages(folder: Path) -> list[Row]:
    """The messages of an export in the order of the log."""
    return sorted(rows(folder / "messages"), key=lambda row: row["log_offset"])
