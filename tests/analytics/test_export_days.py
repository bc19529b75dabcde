"""The files of a task: by segment and day, and taken by no reader before the task counts."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet
import pytest

from analytics.files import days
from analytics.files.days import DayFiles
from tests.analytics.parquet import ordered, rows

MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)
TIME = pyarrow.timestamp("us", "UTC")
SCHEMA = pyarrow.schema({"segment": pyarrow.int32(), "stored_at": TIME, "body": pyarrow.binary()})


def batch(*found: tuple[int, datetime, bytes]) -> pyarrow.RecordBatch:
    """Rows of a segment, a time and a body."""
    segments, times, bodies = zip(*found, strict=True)
    columns = [pyarrow.array(found, kind) for found, kind in zip((segments, times, bodies), SCHEMA.types, strict=True)]
    return pyarrow.RecordBatch.from_arrays(columns, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The folder of a table."""
    return tmp_path / "messages"


def test_each_row_lies_in_the_folder_of_its_segment_and_its_day_in_utc(table: Path) -> None:
    last = MIDNIGHT - timedelta(microseconds=1)
    files = DayFiles(table, SCHEMA, "stored_at")

    files.add(batch((1, last, b"1"), (1, MIDNIGHT, b"2"), (2, MIDNIGHT, b"3")))
    files.add(batch((1, MIDNIGHT, b"4")))
    days.finish(table, files.close())

    folders = sorted(str(file.parent.relative_to(table)) for file in table.rglob("*.parquet"))
    assert folders == ["segment=1/day=2026-03-01", "segment=1/day=2026-03-02", "segment=2/day=2026-03-02"]
    assert [(row["body"], row["segment"], row["stored_at"]) for row in ordered(rows(table), "body")] == [
        (b"1", 1, last),
        (b"2", 1, MIDNIGHT),
        (b"3", 2, MIDNIGHT),
        (b"4", 1, MIDNIGHT),
    ]


def test_rows_are_written_in_groups_of_a_size_that_fits_into_memory(table: Path) -> None:
    files = DayFiles(table, SCHEMA, "stored_at")

    for _ in range(5):
        files.add(batch((1, MIDNIGHT, b"a" * (days.GROUP_BYTES // 2))))
    days.finish(table, files.close())

    [file] = table.rglob("*.parquet")
    assert parquet.read_metadata(file).num_row_groups == 3


def test_a_task_that_ran_twice_counts_once(table: Path) -> None:
    first, second = DayFiles(table, SCHEMA, "stored_at"), DayFiles(table, SCHEMA, "stored_at")
    for files in (first, second):
        files.add(batch((1, MIDNIGHT, b"once")))
    first.close()
    counted = second.close()
    assert list(table.rglob("*.parquet")) == []

    days.finish(table, counted)

    assert [row["body"] for row in rows(table)] == [b"once"]
    assert len([path for path in table.rglob("*") if path.is_file()]) == 1
