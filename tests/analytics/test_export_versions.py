"""Files of an older version: an export that goes on from them is read whole, with null in the columns added since."""

from pathlib import Path

import msgspec
import pandas  # type: ignore[import-untyped]  # pandas ships no types
import pyarrow.parquet as parquet
import pytest
from pyspark.sql import SparkSession

from analytics.export import job
from analytics.files import manifest
from analytics.files.place import Local
from analytics.readers.adbc import AdbcSource
from tests.analytics import duck, writers
from tests.analytics.writers import Connection

# As if these columns had been added in this version; of messages, as `copy_of` was.
ADDED = {"messages": "copy_of", "entries": "entered_at", "transactions": "decided_by"}
OLD, NEW = 6, 4


def live(writer: Connection, ended: int) -> None:
    """Commits some transactions."""
    for _ in range(ended):
        writers.end(writer, writers.begin(writer), "COMMIT")
    writer.commit()


def grow_older(folder: Path) -> None:
    """Writes the files of an export anew, as a version without the added columns wrote them, and its manifest."""
    place = Local(folder)
    made = manifest.read(place)
    assert made is not None
    for part in made.parts:
        if part.table in ADDED:
            table = parquet.read_table(folder / part.path, partitioning=None)
            parquet.write_table(table.drop_columns([ADDED[part.table]]), folder / part.path)
    manifest.write(place, msgspec.structs.replace(made, parts=[manifest.part(place, part.path) for part in made.parts]))


@pytest.fixture
def export(spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path) -> Path:
    """An export of an older version, and what this one added to it."""
    source, first, second = AdbcSource(spark, busy_database), Local(tmp_path / "first"), Local(tmp_path / "second")
    live(writer, OLD)
    manifest.write(first, job.write(source, busy_database, first, lambda counted: None))
    grow_older(first.folder)
    live(writer, NEW)
    manifest.write(second, job.write(source, busy_database, second, lambda counted: None, first))
    return second.folder


@pytest.mark.long
def test_every_reader_has_all_rows_and_all_columns(spark: SparkSession, export: Path) -> None:
    for table, added in ADDED.items():
        known = 0 if added == "copy_of" else NEW
        frame = spark.read.parquet(str(export / table))
        assert (frame.count(), frame.where(f"{added} IS NOT NULL").count()) == (OLD + NEW, known)
        found = pandas.read_parquet(export / table)
        assert (len(found), int(found[added].notna().sum())) == (OLD + NEW, known)
        assert duck.counted(export / table, added) == (OLD + NEW, known)


def test_it_is_verified_and_has_all_columns_in_gathered_files(busy_database: str, export: Path) -> None:
    place = Local(export)
    job.verify(busy_database, place, pytest.fail)
    made = manifest.read(place)
    assert made is not None

    gathered = job.compacted(place, made)

    columns = {part.schema for part in gathered.parts if part.table == "messages" and part.rows}
    assert columns == {max(part.schema for part in made.parts if part.table == "messages")}
