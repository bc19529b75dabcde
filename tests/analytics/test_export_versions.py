"""Files of an older version: an export that goes on from them is read whole, with null in the columns added since."""

from pathlib import Path

import duckdb
import msgspec
import pandas  # type: ignore[import-untyped]  # pandas ships no types
import pyarrow.parquet as parquet
import pytest
from pyspark.sql import SparkSession

from analytics.export import job
from analytics.files import manifest, parts
from analytics.files.place import Local
from analytics.reports import tables
from tests.analytics import exports, writers
from tests.analytics.parquet import ordered, rows
from tests.analytics.writers import Connection

# As if these columns had been added in this version; of messages, as `copy_of` was.
ADDED = {"messages": "copy_of", "entries": "entered_at", "transactions": "decided_by"}
OLD, NEW = 6, 4
IS_OLD = [True] * OLD + [False] * NEW


def live(writer: Connection, ended: int) -> None:
    """Commits some transactions."""
    for _ in range(ended):
        writers.end(writer, writers.begin(writer), "COMMIT")
    writer.commit()


def grow_older(folder: Path) -> None:
    """Writes the files of an export anew, as a version without the added columns wrote them, and its manifest."""
    place = Local(folder)
    made = exports.listed(place)
    for part in made.parts:
        if part.table in ADDED:
            table = parquet.read_table(folder / part.path, partitioning=None)
            parquet.write_table(table.drop_columns([ADDED[part.table]]), folder / part.path)
    manifest.write(place, msgspec.structs.replace(made, parts=[manifest.part(place, part.path) for part in made.parts]))


@pytest.fixture
def export(spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path) -> Path:
    """An export of an older version, and what this one added to it."""
    live(writer, OLD)
    first = exports.write(spark, busy_database, tmp_path / "first")
    grow_older(first)
    live(writer, NEW)
    return exports.write(spark, busy_database, tmp_path / "second", first)


def counted_by_duckdb(folder: Path, column: str) -> tuple[int, int]:
    """The rows of a table of an export, and those that have a value in the column."""
    found = duckdb.read_parquet(f"{folder}/**/*.parquet", hive_partitioning=True, union_by_name=True)
    [(rows, known)] = found.aggregate(f"count(*), count({column})").fetchall()
    return int(rows), int(known)


@pytest.mark.long
def test_every_reader_has_all_rows_and_all_columns(spark: SparkSession, export: Path) -> None:
    for table, added in ADDED.items():
        known = 0 if added == "copy_of" else NEW
        frame = spark.read.parquet(str(export / table))
        assert (frame.count(), frame.where(f"{added} IS NOT NULL").count()) == (OLD + NEW, known)
        found = pandas.read_parquet(export / table)
        assert (len(found), int(found[added].notna().sum())) == (OLD + NEW, known)
        assert counted_by_duckdb(export / table, added) == (OLD + NEW, known)


def test_it_is_verified_and_has_all_columns_in_reports_and_in_gathered_files(
    spark: SparkSession, busy_database: str, export: Path
) -> None:
    place = Local(export)
    job.verify(busy_database, place, pytest.fail)
    made = exports.listed(place)
    entries = tables.read(spark, tables.Export("", place, made)).entries
    assert [row["entered_at"] is None for row in entries.orderBy("queue_offset").collect()] == IS_OLD

    gathered = job.compacted(place, made)
    manifest.write(place, gathered)
    parts.sweep(place, gathered.parts)

    assert [row["entered_at"] is None for row in ordered(rows(export / "entries"), "entered_at")] == IS_OLD[::-1]
    columns = {part.schema for part in gathered.parts if part.table == "messages" and part.rows}
    assert columns == {max(part.schema for part in made.parts if part.table == "messages")}
