"""Closed ranges: what an export reads later, in pieces, is what was there at one moment."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from mqbroker_client.core.ids import uuid7
from pyspark.sql import SparkSession

from analytics import closed, connections
from analytics.closed import ClosedRange, Span
from analytics.errors import LogBusy, SegmentDropped
from analytics.readers import counts, opening
from analytics.readers.adbc import AdbcSource
from analytics.tables import UNDECIDED
from tests.analytics import writers
from tests.analytics.exports import HEAVIEST
from tests.analytics.writers import Connection

MESSAGES = "SELECT transaction_id FROM commit_log WHERE log_offset BETWEEN %s AND %s ORDER BY log_offset"
ENDS = "SELECT transaction_id FROM operation WHERE operation_id BETWEEN %s AND %s ORDER BY operation_id"
ENTRIES = (
    "SELECT queue_offset, log_offset FROM consume_queue WHERE queue_offset BETWEEN %s AND %s ORDER BY queue_offset"
)
HALVES_THERE = "SELECT transaction_id FROM half_message ORDER BY transaction_id"
WAITING = "SELECT count(*) FROM pg_locks, pg_sleep(0.01) WHERE locktype = 'advisory' AND NOT granted"


@pytest.fixture
def other_writer(busy_database: str) -> Iterator[Connection]:
    """Another one."""
    with psycopg.connect(busy_database) as connection:
        yield connection


def capture(database: str) -> ClosedRange:
    """The closed range now."""
    with closed.quiet(database) as (reader, _):
        return closed.find(reader)


def read(connection: Connection, ranges: ClosedRange) -> tuple[list[Any], list[Any], list[Any]]:
    """What lies in a closed range of one segment: messages, ends and entries."""
    [segment] = ranges.segments
    queues = segment.entries[0].span if segment.entries else None
    spans = ((MESSAGES, segment.messages), (ENDS, segment.operations), (ENTRIES, queues))
    messages, ends, entries = (connection.execute(query, bounds(span)).fetchall() for query, span in spans)
    return messages, ends, entries


def bounds(span: Span | None) -> tuple[int, int]:
    return (0, -1) if span is None else (span.first, span.last)


def test_a_closed_range_does_not_change_and_has_each_transaction_once(busy_database: str) -> None:
    captured = []
    with writers.at_work(busy_database, threads=4):
        for _ in range(25):
            with closed.quiet(busy_database) as (reader, _first):
                ranges = closed.find(reader)
                captured.append((ranges, read(reader, ranges), reader.execute(HALVES_THERE).fetchall()))

    with psycopg.connect(busy_database) as later:
        for ranges, then, halves in captured:
            assert read(later, ranges) == then
            begun, ended, _entries = then
            assert sorted(begun) == sorted(ended + halves)
    assert captured[0][1] != captured[-1][1]


def test_the_check_above_catches_a_writer_that_does_not_hold_the_lock(
    busy_database: str, writer: Connection, other_writer: Connection
) -> None:
    writers.begin(other_writer)
    writer.execute(writers.STORE, {"id": uuid7(), "message_id": uuid7()})
    writers.begin(other_writer)
    other_writer.commit()
    with closed.quiet(busy_database) as (reader, _):
        ranges = closed.find(reader)
        then = read(reader, ranges)

    writer.commit()

    assert read(other_writer, ranges) != then


def test_a_closed_range_holds_what_was_under_way_when_it_was_asked_for(busy_database: str, writer: Connection) -> None:
    writers.begin(writer)
    with ThreadPoolExecutor() as pool, psycopg.connect(busy_database) as observer:
        asked = pool.submit(capture, busy_database)
        while observer.execute(WAITING).fetchone() == (0,):
            observer.rollback()

        writer.commit()

        assert asked.result().segments[0].messages == Span(0, 0)


def test_writers_go_on_while_a_closed_range_is_read(busy_database: str, writer: Connection) -> None:
    with closed.quiet(busy_database) as (reader, _):
        transaction_id = writers.begin(writer)
        writer.commit()

        assert closed.find(reader).segments[0].messages is None
    assert writer.execute(HALVES_THERE).fetchall() == [(transaction_id,)]


def test_a_writer_that_does_not_finish_is_named_and_not_waited_for(
    busy_database: str, writer: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed, "TRIES", 2)
    writers.begin(writer)

    with pytest.raises(LogBusy) as refused:
        capture(busy_database)

    assert refused.value.code == "log_busy"
    assert str(refused.value) == (
        "A writer of the log has held it for 2 tries of 500 ms: look in pg_stat_activity for a session that idles in a "
        "transaction, end it, and export again."
    )


@pytest.mark.parametrize("reader", ["jdbc", "source"])
def test_spark_reads_the_halves_of_the_same_moment(
    busy_database: str, spark: SparkSession, writer: Connection, reader: str
) -> None:
    source = opening.jdbc(spark, busy_database, HEAVIEST) if reader == "jdbc" else AdbcSource(spark, busy_database)
    ended, waiting = writers.begin(writer), writers.begin(writer)
    writer.commit()

    with closed.quiet(busy_database) as (_, first):
        writers.end(writer, ended, "COMMIT")
        writers.begin(writer)
        writer.commit()
        halves = source.whole(UNDECIDED, first).collect()

    assert {row.transaction_id for row in halves} == {str(ended), str(waiting)}


@pytest.mark.parametrize(
    ("table", "count"),
    [("commit_log", counts.messages), ("consume_queue", counts.entries), ("operation", counts.ends)],
)
def test_a_segment_that_retention_drops_meanwhile_is_noticed(
    busy_database: str, writer: Connection, table: str, count: Any
) -> None:
    writers.end(writer, writers.begin(writer), "COMMIT")
    writer.commit()
    with connections.connect(busy_database) as broker:
        ranges = capture(busy_database)
        assert count(broker, ranges) == 1
        broker.commit()

        writer.execute(f"DROP TABLE {table}_1")
        writer.commit()

        with pytest.raises(SegmentDropped) as refused:
            count(broker, ranges)
    assert str(refused.value) == (
        "Retention dropped segment 1 while it was exported; the folder is as it was: export again."
    )
