"""Exports as tables of Delta Lake and of Iceberg: a version for each export, whole at any moment, for every engine."""

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute as pc
import pyarrow.parquet as parquet
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from analytics.export import job
from analytics.files import manifest, parts
from analytics.files.lake import delta as delta_format
from analytics.files.lake import iceberg as iceberg_format
from analytics.files.place import Local
from tests.analytics import writers
from tests.analytics.conftest import start
from tests.analytics.exports import listed
from tests.analytics.exports import replace as export
from tests.analytics.kills import kill
from tests.analytics.parquet import rows
from tests.analytics.writers import Connection


def delta(folder: Path, table: str, version: int | None = None) -> Any:
    """A table of Delta Lake."""
    from deltalake import DeltaTable

    return DeltaTable(str(folder / table), version=version)


def iceberg(folder: Path, table: str) -> Any:
    """A table of Iceberg."""
    from pyiceberg.catalog import load_catalog

    return load_catalog("mqbroker", type="sql", uri=f"sqlite:///{folder}/_iceberg/catalog.db").load_table(
        f"mqbroker.{table}"
    )


def read(folder: Path, format: str, table: str = "messages") -> Any:
    """The rows of a table of a format, as Arrow has them."""
    if format == "delta":
        return delta(folder, table).to_pyarrow_table()
    return iceberg(folder, table).scan().to_arrow()


def offsets(found: Any) -> list[int]:
    """The log offsets in an Arrow table."""
    return sorted(found["log_offset"].to_pylist())


@pytest.mark.parametrize("format", ["delta", pytest.param("iceberg", marks=pytest.mark.long)])
def test_three_increments_are_three_versions_and_each_engine_reads_the_same_rows(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path, format: str
) -> None:
    folder = tmp_path / "export"
    counts = []
    for number in range(3):
        writers.live(writer, ended=3, undecided=2)
        # Later ones add to the tables that are there.
        export(spark, busy_database, folder, "parquet" if number else format)
        counts.append(len(rows(folder / "messages")))
        job.verify(busy_database, Local(folder), pytest.fail)

    assert counts == [5, 10, 15]
    for table in manifest.TABLES:
        expected = len(rows(folder / table))
        assert {engine: count(folder, table) for engine, count in COUNTS[format].items()} == dict.fromkeys(
            COUNTS[format], expected
        )
    assert offsets(read(folder, format)) == list(range(15))
    assert VERSIONS[format](folder) == counts


def test_readers_of_delta_skip_files_by_the_bounds_of_their_columns(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    folder = tmp_path / "export"
    for _ in range(3):
        writers.live(writer, ended=3, undecided=2)
        export(spark, busy_database, folder, "delta")
    actions = {
        row["path"]: row for row in pyarrow.table(delta(folder, "messages").get_add_actions(flatten=True)).to_pylist()
    }

    for path, action in actions.items():
        held = rows(folder / "messages" / path)
        for column in ("log_offset", "message_id", "topic", "stored_at"):
            values = [row[column] for row in held]
            assert (action[f"min.{column}"], action[f"max.{column}"]) == (min(values), max(values))
            assert action[f"null_count.{column}"] == 0
        assert (action["null_count.tags"], action["num_records"]) == (len(held), len(held))
    assert delta(folder, "messages").to_pyarrow_dataset().to_table(filter=pc.field("log_offset") == 7).num_rows == 1


def versions_of_delta(folder: Path) -> list[int]:
    """The rows of each version, but of the first, which made the table."""
    latest = delta(folder, "messages").version()
    return [len(delta(folder, "messages", version).to_pyarrow_table()) for version in range(1, latest + 1)]


def versions_of_iceberg(folder: Path) -> list[int]:
    """The rows of each snapshot."""
    table = iceberg(folder, "messages")
    return [len(table.scan(snapshot_id=one.snapshot_id).to_arrow()) for one in table.snapshots()]


def by_polars(frame: Any) -> int:
    """The rows that Polars counts."""
    return int(frame.collect().height)


def by_duckdb(found: Any) -> int:
    """The rows that DuckDB counts in what Arrow reads."""
    import duckdb

    return len(duckdb.from_arrow(found).fetchall())


def polars_delta(folder: Path, table: str) -> int:
    """The rows that Polars reads."""
    import polars

    return by_polars(polars.scan_delta(str(folder / table)))


def polars_iceberg(folder: Path, table: str) -> int:
    """The rows that Polars reads."""
    import polars

    return by_polars(polars.scan_iceberg(iceberg(folder, table)))


VERSIONS = {"delta": versions_of_delta, "iceberg": versions_of_iceberg}
COUNTS = {
    "delta": {
        "pandas": lambda folder, table: len(delta(folder, table).to_pandas()),
        "duckdb": lambda folder, table: by_duckdb(read(folder, "delta", table)),
        "polars": polars_delta,
    },
    "iceberg": {
        "pandas": lambda folder, table: len(iceberg(folder, table).scan().to_pandas()),
        "duckdb": lambda folder, table: by_duckdb(read(folder, "iceberg", table)),
        "polars": polars_iceberg,
    },
}


def without(folder: Path, column: str) -> manifest.Manifest:
    """Makes the messages of an export those of a version that did not have a column."""
    place = Local(folder)
    made = listed(place)
    for part in made.parts:
        if part.table == "messages":
            found = parquet.read_table(folder / part.path, partitioning=None)
            parquet.write_table(found.drop_columns([column]), folder / part.path)
    older = manifest.with_parts(made, [manifest.part(place, part.path) for part in made.parts])
    manifest.write(place, older)
    return older


@pytest.mark.parametrize("format", [pytest.param("delta", marks=pytest.mark.long), "iceberg"])
def test_a_column_that_was_added_is_null_in_earlier_rows(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path, format: str
) -> None:
    folder = tmp_path / "export"
    writers.live(writer, ended=1, undecided=1)
    export(spark, busy_database, folder)
    made = without(folder, "traceparent")
    columns = dict(parts.COLUMNS)
    columns["messages"] = StructType([column for column in columns["messages"] if column.name != "traceparent"])
    {"delta": delta_format.commit, "iceberg": iceberg_format.commit}[format](folder, folder, made, columns)
    assert "traceparent" not in read(folder, format).column_names

    writers.live(writer, ended=1, undecided=1)
    export(spark, busy_database, folder)

    found = read(folder, format)
    assert (found["traceparent"].null_count, len(found)) == (4, 4)


def test_tables_of_a_folder_that_was_moved_begin_anew(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    writers.live(writer, ended=1, undecided=1)
    for format in COUNTS:
        export(spark, busy_database, tmp_path / "old export", format)
    (tmp_path / "old export").rename(tmp_path / "new export")

    writers.live(writer, ended=1, undecided=1)
    export(spark, busy_database, tmp_path / "new export")

    assert [offsets(read(tmp_path / "new export", format)) for format in COUNTS] == [list(range(4))] * 2


@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_export_that_is_killed_before_its_commit_leaves_tables_that_are_whole(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    folder = tmp_path / "export"
    writers.live(writer, ended=3, undecided=2)
    for format in ("delta", "iceberg"):
        export(spark, busy_database, folder, format)
    writers.live(writer, ended=3, undecided=2)

    with start(busy_database, folder) as killed:
        assert killed.stdout is not None
        # All data are written then, and no commit is.
        assert any(line.startswith("timers") for line in killed.stdout)
        kill(killed)

    assert [offsets(read(folder, format)) in (list(range(5)), list(range(10))) for format in COUNTS] == [True, True]
    export(spark, busy_database, folder)
    assert [offsets(read(folder, format)) for format in COUNTS] == [list(range(10))] * 2
    job.verify(busy_database, Local(folder), pytest.fail)
