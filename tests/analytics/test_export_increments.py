"""Increments: an export goes on from the end of the earlier one, and its list says what it holds."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psycopg
import pytest
from pyspark.sql import SparkSession

from analytics.closed import ClosedRange, ClosedSegment, QueueSpan, Span
from analytics.export import job
from analytics.files import increments, manifest, parts
from analytics.files.manifest import Hole, Reached
from analytics.files.place import Local
from tests.analytics import writers
from tests.analytics.exports import listed, messages, problems, write
from tests.analytics.parquet import rows, transactions
from tests.analytics.writers import Connection
from tests.broker import databases

FINAL = ("messages", "entries", "transactions")
SegmentSpans = tuple[int, Span | None, list[QueueSpan]]


def waste(writer: Connection) -> None:
    """Takes a log offset and rolls it back."""
    writers.begin(writer)
    writer.rollback()


@dataclass(frozen=True)
class Grown:
    """An export, and beside it a second one that goes on from it, of the same database."""

    database: str
    first: Path
    second: Path


@pytest.fixture(scope="module")
def grown(spark: SparkSession, prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grown]:
    """The first of ended and undecided transactions, with an unused log offset; the second of their ends."""
    folder = tmp_path_factory.mktemp("grown")
    with databases.copied(prepared) as url, psycopg.connect(url) as writer:
        writers.live(writer, ended=6, undecided=2)
        waste(writer)
        writers.live(writer, ended=2, undecided=0)
        first = write(spark, url, folder / "first")
        for row in rows(first / "transactions_open"):
            writers.end(writer, row["transaction_id"], "COMMIT")
        writers.live(writer, ended=3, undecided=1)
        yield Grown(url, first, write(spark, url, folder / "second", first))


def test_an_increment_adds_what_is_new_and_keeps_the_files_of_the_rest(grown: Grown) -> None:
    made = listed(Local(grown.second))

    assert [row["log_offset"] for row in messages(grown.second)] == [offset for offset in range(15) if offset != 8]
    states = [row["state"] for row in transactions(grown.second)]
    assert (len(states), states.count("PREPARED")) == (14, 1)
    final = [part.path for part in listed(Local(grown.first)).parts if part.table in FINAL]
    assert {part.path for part in made.parts} >= set(final)
    assert all((grown.second / path).stat().st_ino == (grown.first / path).stat().st_ino for path in final)
    assert made.unused == [(8, 8)]
    assert problems(grown.database, Local(grown.second)) == []


def test_the_first_message_of_a_broker_is_not_listed_as_one_that_was_rolled_back(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    writers.live(writer, ended=0, undecided=1)

    made = listed(Local(write(spark, busy_database, tmp_path / "first")))

    assert (made.rows["messages"], made.ends.log_offset, made.unused) == (1, 0, [])


def test_small_files_of_a_day_are_gathered_and_hold_the_same_rows(grown: Grown, tmp_path: Path) -> None:
    place = Local(Path(shutil.copytree(grown.second, tmp_path / "export")))
    made = listed(place)

    manifest.write(place, job.compacted(place, made))
    parts.sweep(place, listed(place).parts)

    days = {Path(part.path).parent for part in made.parts}
    assert len(days) < len(made.parts)
    assert len(listed(place).parts) == len(days)
    assert messages(place.folder) == messages(grown.second)
    assert problems(grown.database, place) == []


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
