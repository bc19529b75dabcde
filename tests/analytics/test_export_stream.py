"""The data source `mqbroker`: the tables of the export in any Spark, and the messages as a stream."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from analytics.errors import HoleFound, OptionRefused
from analytics.stream import register
from tests.analytics import sources, streaming, writers
from tests.analytics.conftest import PASSWORD
from tests.analytics.parquet import Row, ordered, rows
from tests.analytics.past import Past
from tests.analytics.writers import Connection


def stream_on(spark: SparkSession, url: str, folder: Path) -> list[int]:
    """Streams what there is to files, from where an earlier stream ended; gives the log offsets in all the files."""
    streaming.to_files(streaming.frame(spark, url, table="messages", rows_per_slice=8), folder)
    return sorted(row["log_offset"] for row in rows(folder / "files"))


def begin(writer: Connection, number: int) -> None:
    """Stores so many messages."""
    for _ in range(number):
        writers.begin(writer)
    writer.commit()


ORDERS = {
    "messages": ["log_offset"],
    "entries": ["topic", "queue_id", "queue_offset"],
    "transactions": ["transaction_id"],
    "checks": ["asked_at"],
    "timers": ["due_at"],
}


def require_whole(found: list[Row], past: Past, table: str) -> None:
    """The rows are those of the past, each with its day, and messages with the state of their transaction."""
    days = {row.pop("day", None) for row in found}
    states = {row.pop("state") for row in found} if table == "messages" else set()
    assert ordered(found, *ORDERS[table]) == ordered(getattr(past, table), *ORDERS[table])
    assert all(day is None or isinstance(day, date) for day in days)
    assert states == ({None, "PREPARED", "COMMITTED", "ROLLED_BACK", "DISCARDED"} if table == "messages" else set())


@pytest.mark.parametrize("table", ORDERS)
def test_each_table_is_read_whole_in_slices(reader: str, past: Past, table: str) -> None:
    require_whole(sources.read(reader, table=table, rows_per_slice=200), past, table)


def test_spark_reads_a_table_whole_in_slices(spark: SparkSession, reader: str, past: Past) -> None:
    frame = spark.read.format("mqbroker").options(url=reader, table="messages", rows_per_slice=200).load()

    require_whole(utc([row.asDict() for row in frame.collect()]), past, "messages")


@pytest.mark.parametrize(
    ("table", "start", "end", "condition"),
    [
        ("messages", '{"log_offset": 3}', '{"log_offset": 305}', lambda row: 3 <= row["log_offset"] < 305),
        ("messages", "earliest", '{"log_offset": 9999999}', lambda row: True),
        ("messages", "latest", "latest", lambda row: False),
        (
            "entries",
            '{"orders": {"0": 4, "1": -1}}',
            '{"orders": {"0": 9, "2": -2}}',
            lambda row: (
                row["topic"] != "orders"
                or row["queue_id"] not in (0, 1, 2)
                or (row["queue_id"] == 0 and 4 <= row["queue_offset"] < 9)
            ),
        ),
    ],
)
def test_a_read_is_of_the_offsets_between_its_bounds(
    reader: str, past: Past, table: str, start: str, end: str, condition: Callable[[Row], bool]
) -> None:
    whole = sources.read(reader, table=table)

    found = sources.read(reader, table=table, startingOffsets=start, endingOffsets=end, rows_per_slice=50)

    assert ordered(found, *ORDERS[table]) == ordered([row for row in whole if condition(row)], *ORDERS[table])


def test_a_read_between_two_times_has_the_rows_of_that_time(busy_database: str, writer: Connection) -> None:
    begin(writer, 3)
    [(since,)] = writer.execute("SELECT clock_timestamp()").fetchall()
    writer.commit()
    begin(writer, 4)
    [(until,)] = writer.execute("SELECT clock_timestamp()").fetchall()
    writer.commit()
    begin(writer, 5)

    bounds = {"startingTimestamp": since.isoformat(), "endingTimestamp": until.isoformat()}
    assert [row["log_offset"] for row in sources.read(busy_database, table="messages", **bounds)] == [3, 4, 5, 6]


def test_a_stream_that_was_stopped_within_a_batch_ends_it_and_reads_what_came_since(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    begin(writer, 10)
    first = stream_on(spark, busy_database, tmp_path)
    # What a kill between the files of a batch and the end of it leaves.
    for file in (tmp_path / "checkpoint" / "commits").iterdir():
        file.unlink()
    begin(writer, 5)

    second = stream_on(spark, busy_database, tmp_path)

    assert (first, second) == (list(range(10)), list(range(15)))


def test_a_stream_that_retention_overtook_names_the_hole(busy_database: str, writer: Connection) -> None:
    begin(writer, 7)
    writer.execute("DELETE FROM commit_log WHERE log_offset < 6")
    writer.commit()

    with pytest.raises(HoleFound) as refused:
        sources.stream(busy_database, table="messages").partitions({"log_offset": 4}, {"log_offset": 7})

    assert "Retention dropped the log offsets 4 to 5 before this stream read them" in str(refused.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"table": "queues"},
            "There is no table queues: give one of committed, messages, entries, transactions, checks, timers.",
        ),
        ({"rows_per_slice": "0"}, "rows_per_slice is 0: give a whole number from 1 on."),
        (
            {"rows_per_slise": "10"},
            "There is no option rows_per_slise: give one of table, columns, url, rows_per_slice, topic, topicPattern, "
            "assign, namespace, startingOffsets, startingTimestamp, endingOffsets, endingTimestamp, "
            "maxOffsetsPerTrigger. Did you mean rows_per_slice?",
        ),
        ({"columns": "topic, bodies"}, "The table committed has no column bodies: give one of topic, queue_id, "),
        (
            {"table": "timers", "startingOffsets": "latest"},
            "The table timers has no order to stream by: read it whole, or stream committed, messages, entries, ",
        ),
        ({"maxOffsetsPerTrigger": "10"}, "maxOffsetsPerTrigger is an option of streams: give it to spark.readStream."),
    ],
)
def test_an_option_that_is_not_understood_is_refused_with_what_is(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(OptionRefused) as refused:
        sources.read("postgresql:///none", **options)

    assert sentence in str(refused.value)


def test_what_the_source_refuses_is_what_spark_raises(spark: SparkSession, database: str) -> None:
    with pytest.raises(AnalysisException, match="There is no option rows_per_slise: give one of table, "):
        spark.read.format("mqbroker").options(url=database, rows_per_slise=10).load().count()


def test_a_table_without_an_order_is_not_streamed(database: str) -> None:
    with pytest.raises(OptionRefused) as refused:
        sources.stream(database, table="checks")

    assert str(refused.value).startswith(
        "The table checks has no order to stream by: read it whole, or stream committed, messages"
    )


def test_a_stream_has_no_end(database: str) -> None:
    with pytest.raises(OptionRefused) as refused:
        sources.stream(database, endingOffsets="latest")

    assert str(refused.value) == "endingOffsets is no option of streams, which do not end: give it to spark.read."


def test_a_second_registration_keeps_the_workers_of_the_first(spark: SparkSession) -> None:
    before = dict(spark.sparkContext.environment)

    register(spark)

    # Spark starts other workers for another environment.
    assert spark.sparkContext.environment == before


def test_no_plan_shows_the_password(
    spark: SparkSession, reader: str, past: Past, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = spark.read.format("mqbroker").option("url", reader).load()

    shown = plans(frame, capsys)

    assert "mqbroker" in shown
    for secret in (PASSWORD, str(urlsplit(reader).password)):
        assert secret not in shown


def plans(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    """Every plan of a frame that Spark prints."""
    for mode in ("extended", "cost", "formatted"):
        frame.explain(mode)
    return capsys.readouterr().out


def utc(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the zone of their times, and bodies as bytes."""
    return [{column: _plain(value) for column, value in row.items()} for row in found]


def _plain(value: Any) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    return value.astimezone(UTC) if isinstance(value, datetime) else value
