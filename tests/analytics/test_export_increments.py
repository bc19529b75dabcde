"""Increments: an export goes on from the end of the earlier one, and its list says what it holds."""

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow
import pyarrow.parquet as parquet
import pytest
from pyspark.sql import SparkSession

from analytics.closed import ClosedRange, ClosedSegment, QueueSpan, Span
from analytics.errors import ExportDamaged, FolderRefused
from analytics.export import job
from analytics.files import increments, manifest, parts
from analytics.files.manifest import Hole, Manifest, Reached
from analytics.files.place import Local
from analytics.readers.adbc import AdbcSource
from analytics.reports import tables
from tests.analytics import writers
from tests.analytics.parquet import rows, transactions
from tests.analytics.writers import Connection

SegmentSpans = tuple[int, Span | None, list[QueueSpan]]


def export(spark: SparkSession, database: str, folder: Path, earlier: Path | None = None) -> Path:
    """An export to a new folder, beside the earlier one that it goes on from."""
    source, before = AdbcSource(spark, database), Local(earlier) if earlier else None
    manifest.write(Local(folder), job.write(source, database, Local(folder), lambda counted: None, before))
    return folder


def problems(database: str, folder: Path) -> list[str]:
    """What a verification says that is no hole."""
    said: list[str] = []
    with suppress(ExportDamaged):
        job.verify(database, Local(folder), said.append)
    return said


def waste(writer: Connection) -> None:
    """Takes a log offset and rolls it back."""
    writers.begin(writer)
    writer.rollback()


@pytest.fixture
def exported(spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path) -> Path:
    """An export of ended and undecided transactions, with log offsets that no message has."""
    writers.live(writer, ended=6, undecided=2)
    waste(writer)
    writers.live(writer, ended=2, undecided=0)
    return export(spark, busy_database, tmp_path / "first")


def test_an_increment_adds_what_is_new_and_keeps_the_files_of_the_rest(
    spark: SparkSession, busy_database: str, writer: Connection, exported: Path, tmp_path: Path
) -> None:
    for transaction_id in [row["transaction_id"] for row in rows(exported / "transactions_open")]:
        writers.end(writer, transaction_id, "COMMIT")
    writers.live(writer, ended=3, undecided=1)

    second = export(spark, busy_database, tmp_path / "second", exported)

    offsets = [row["log_offset"] for row in sorted_rows(second / "messages")]
    assert offsets == [offset for offset in range(15) if offset != 8]
    states = [row["state"] for row in transactions(second)]
    assert (len(states), states.count("PREPARED")) == (14, 1)
    final = [part.path for part in listed(exported).parts if part.table in ("messages", "entries", "transactions")]
    assert {part.path for part in listed(second).parts} >= set(final)
    assert all((second / path).stat().st_ino == (exported / path).stat().st_ino for path in final)
    assert listed(second).unused == [(8, 8)]
    assert problems(busy_database, second) == []


def test_the_first_message_of_a_broker_is_not_listed_as_one_that_was_rolled_back(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    writers.live(writer, ended=0, undecided=1)

    made = listed(export(spark, busy_database, tmp_path / "first"))

    assert (made.rows["messages"], made.ends.log_offset, made.unused) == (1, 0, [])


def test_small_files_of_a_day_are_gathered_and_hold_the_same_rows(
    spark: SparkSession, busy_database: str, writer: Connection, exported: Path, tmp_path: Path
) -> None:
    writers.live(writer, ended=3, undecided=1)
    second = export(spark, busy_database, tmp_path / "second", exported)
    before, made = sorted_rows(second / "messages"), listed(second)

    gather(second)

    days = {Path(part.path).parent for part in made.parts}
    assert len(days) < len(made.parts)
    assert len(listed(second).parts) == len(days)
    assert sorted_rows(second / "messages") == before
    assert problems(busy_database, second) == []


def test_a_column_that_is_newer_than_a_file_is_null_in_reports_and_in_gathered_files(
    spark: SparkSession, busy_database: str, writer: Connection, exported: Path, tmp_path: Path
) -> None:
    made = listed(exported)
    for part in made.parts:
        if part.table == "entries":
            file = exported / part.path
            parquet.write_table(parquet.read_table(file, partitioning=None).drop_columns(["due_at"]), file)
    older = [manifest.part(Local(exported), part.path) for part in made.parts]
    manifest.write(Local(exported), msgspec.structs.replace(made, parts=older))
    before = len(rows(exported / "entries"))
    writers.live(writer, ended=2, undecided=0)

    second = export(spark, busy_database, tmp_path / "second", exported)
    entries = tables.read(spark, tables.Export("", Local(second), listed(second))).entries

    assert {row["due_at"] for row in entries.collect()} == {None}
    gather(second)
    gathered = rows(second / "entries")
    assert (len(gathered), {row["due_at"] for row in gathered}) == (before + 1, {None})


def gather(folder: Path) -> None:
    """Gathers the small files of an export."""
    manifest.write(Local(folder), job.compacted(Local(folder), listed(folder)))
    parts.sweep(Local(folder), listed(folder).parts)


def listed(folder: Path) -> Manifest:
    """The list of an export's files."""
    found = manifest.read(Local(folder))
    assert found is not None
    return found


def sorted_rows(folder: Path) -> list[dict[str, Any]]:
    """Messages in the order of the log."""
    return sorted(rows(folder), key=lambda row: row["log_offset"])


def test_what_is_damaged_is_named(exported: Path, busy_database: str) -> None:
    assert problems(busy_database, exported) == []
    made = listed(exported)
    part = next(part for part in made.parts if part.table == "messages" and part.rows > 2)
    file = exported / part.path
    whole, table = file.read_bytes(), parquet.read_table(file, partitioning=None)
    changed = f"{part.path} was changed: its checksum is not that of the manifest."
    offset = table["log_offset"][1].as_py()

    parquet.write_table(pyarrow.concat_tables([table[:1], table[2:]]), file)
    assert problems(busy_database, exported) == [
        changed,
        f"{part.path} holds {part.rows - 1} rows, and {part.rows} were exported.",
        f"messages: the log offsets {offset} to {offset} are missing.",
    ]

    parquet.write_table(pyarrow.concat_tables([table, table[1:2]]), file)
    assert problems(busy_database, exported) == [
        changed,
        f"{part.path} holds {part.rows + 1} rows, and {part.rows} were exported.",
        f"messages: the log offset {offset} is there 2 times.",
    ]

    middle = len(whole) // 2
    file.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    assert problems(busy_database, exported)[0] == changed

    file.unlink()
    assert problems(busy_database, exported)[0] == f"{part.path} is missing, with {part.rows} rows."


def test_another_outcome_in_the_broker_is_named(exported: Path, busy_database: str, writer: Connection) -> None:
    writer.execute("DELETE FROM operation WHERE operation_id = (SELECT min(operation_id) FROM operation)")
    writer.commit()

    assert problems(busy_database, exported) == [
        "transactions: segment 1 has 4 ROLLED_BACK in the files and 3 in the broker."
    ]


def test_an_export_of_another_database_is_not_gone_on_from(
    spark: SparkSession, busy_database: str, exported: Path, tmp_path: Path
) -> None:
    document = json.loads((exported / manifest.NAME).read_text())
    (exported / manifest.NAME).write_text(json.dumps({**document, "database": "1/2"}))

    with pytest.raises(FolderRefused) as refused:
        export(spark, busy_database, tmp_path / "second", exported)

    assert str(refused.value).startswith("The folder holds an export of another database (1/2, this is ")


def closed_range(*segments: SegmentSpans) -> ClosedRange:
    """A closed range of segments with messages and entries."""
    made = [ClosedSegment(number, "closed", messages, None, queues) for number, messages, queues in segments]
    return ClosedRange(datetime(2026, 3, 1, tzinfo=UTC), made)


def test_what_retention_dropped_between_two_exports_is_a_hole_with_its_offsets() -> None:
    ends = Reached(segment=1, log_offset=9, operation_id=-1, queues=[(1, 0, 4)])
    later = closed_range((3, Span(25, 30), [QueueSpan(1, 0, Span(8, 9)), QueueSpan(1, 1, Span(2, 3))]))

    assert increments.holes(later, ends) == [
        Hole("messages", 10, 24),
        Hole("entries", 5, 7, 1, 0),
        Hole("entries", 0, 1, 1, 1),
    ]
    assert increments.holes(later, increments.NOTHING) == []


def test_operations_that_retention_dropped_before_the_log_of_their_segment_are_a_hole() -> None:
    ends = Reached(segment=1, log_offset=9, operation_id=7, queues=[])
    [second, third] = closed_range((2, Span(10, 15), []), (3, Span(16, 20), [])).segments
    later = ClosedRange(datetime(2026, 3, 1, tzinfo=UTC), [second, replace(third, operations=Span(12, 14))])

    assert increments.holes(later, ends) == [Hole("transactions", 8, 11)]
    assert increments.holes(later, msgspec.structs.replace(ends, operation_id=11)) == []


def test_the_first_operation_of_a_broker_is_behind_no_hole() -> None:
    [second] = closed_range((2, Span(0, 1), [])).segments
    later = ClosedRange(datetime(2026, 3, 1, tzinfo=UTC), [replace(second, operations=Span(1, 2))])

    assert increments.holes(later, Reached(segment=1, log_offset=-1, operation_id=-1, queues=[])) == []


def test_offsets_that_no_message_has_are_no_hole_while_their_segment_is_kept() -> None:
    ends = Reached(segment=1, log_offset=9, operation_id=-1, queues=[])

    assert increments.holes(closed_range((1, Span(0, 9), []), (2, Span(12, 15), [])), ends) == []


def test_an_increment_begins_behind_the_end_of_each_table_and_queue() -> None:
    ends = Reached(segment=2, log_offset=12, operation_id=-1, queues=[(1, 0, 4)])
    now = closed_range(
        (1, Span(0, 9), [QueueSpan(1, 0, Span(0, 2))]),
        (2, Span(10, 15), [QueueSpan(1, 0, Span(3, 6)), QueueSpan(1, 1, Span(0, 0))]),
    )

    first, second = increments.after(now, ends).segments

    assert (first.messages, first.entries) == (None, [])
    assert (second.messages, second.entries) == (
        Span(13, 15),
        [QueueSpan(1, 0, Span(5, 6)), QueueSpan(1, 1, Span(0, 0))],
    )
    assert increments.reached(now, ends) == Reached(2, 15, -1, [(1, 0, 6), (1, 1, 0)])
