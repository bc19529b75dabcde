"""A cell that was split off says of each row whether it is a copy of its parent's, and the reports leave copies out."""

from pyspark.sql import SparkSession

from analytics.readers.datasource.published import STREAMED
from analytics.reports import deliveries, tables
from tests.analytics import sources, writers
from tests.analytics.frames import Frames, entry, message, rows, transaction
from tests.analytics.writers import Connection

# What the split does in the new cell, whose database has all rows of its parent.
SPLIT = """
UPDATE cell_identity
SET first_numbers = (
    SELECT jsonb_object_agg(s.sequencename, s.last_value + 1) || jsonb_build_object('noted_at', clock_timestamp())
    FROM pg_sequences AS s
    WHERE s.last_value IS NOT NULL
)
"""


def copied(url: str, table: str, column: str) -> list[bool]:
    """Of each row whether it is a copy, in the order of the column."""
    found = sources.read(url, table=table)
    return [row["copied"] for row in sorted(found, key=lambda row: row[column])]


def test_rows_from_before_the_split_are_copies_and_a_late_end_of_an_old_half_is_none(
    busy_database: str, writer: Connection
) -> None:
    late = writers.begin(writer)
    writers.end(writer, writers.begin(writer), "COMMIT")
    writer.execute(SPLIT)
    writer.commit()
    writers.end(writer, late, "COMMIT")
    writers.end(writer, writers.begin(writer), "COMMIT")
    writer.commit()

    assert copied(busy_database, "messages", "log_offset") == [True, True, False]
    assert copied(busy_database, "entries", "queue_offset") == [True, False, False]
    assert copied(busy_database, "transactions", "decided_at") == [True, False, False]


def test_a_database_that_was_not_split_has_no_copies(busy_database: str, writer: Connection) -> None:
    writers.live(writer, ended=3, undecided=1)

    found = {row["copied"] for table in STREAMED[1:] for row in sources.read(busy_database, table=table)}

    assert found == {False}


def test_volumes_leave_copies_out_also_where_a_copy_was_stored_again(spark: SparkSession, frames: Frames) -> None:
    messages = frames.messages(
        message(1, copied=True),
        message(1, log_offset=9, copied=False, copy_of=1),
        message(2, copied=False),
        # Of a file of an older version.
        message(3),
    )
    transactions = frames.transactions(transaction("a", "COMMITTED", copied=True), transaction("b", "COMMITTED"))

    assert rows(deliveries.volumes(messages), "messages") == [{"messages": 2}]
    assert [row["transaction_id"] for row in rows(tables.own(transactions))] == ["b"]


def test_a_dead_letter_that_the_split_copied_counts_in_one_cell(spark: SparkSession, frames: Frames) -> None:
    entries = frames.entries(*(entry(number, "%DLQ%mail", 0, copied=number == 1) for number in (1, 2)))

    report = deliveries.retries(tables.own(entries), frames.messages(message(1)))

    assert rows(report, "topic", "dead_letters") == [{"topic": "orders", "dead_letters": 1}]
