"""The tables of the export: the statement that reads each table, and its columns in the files."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from store.db.statements import Statement

# The column of the day. Files have it in the name of their folder; the data source computes it.
DAY = "day"
# Whether a row is a copy from before the split that made its cell: another cell has the original.
COPIED = "copied"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the export: its statement and columns.

    The column `day_of` gives the day by which its files are sorted.
    """

    statement: Statement[Any]
    columns: StructType
    day_of: str | None = None


# JSON in the database, a map in Spark.
PROPERTIES = MapType(StringType(), StringType())

MESSAGE_COLUMNS = (
    StructType()
    .add("log_offset", LongType())
    .add("copy_of", LongType())
    .add("message_id", StringType())
    .add("topic", StringType())
    .add("namespace", StringType())
    .add("queue_id", IntegerType())
    .add("producer_group", StringType())
    .add("transaction_id", StringType())
    .add("tags", StringType())
    .add("keys", ArrayType(StringType()))
    .add("sharding_key", StringType())
    .add("traceparent", StringType())
    .add("properties", PROPERTIES)
    .add("body", BinaryType())
    .add("body_bytes", IntegerType())
    .add("body_form", StringType())
    .add("born_at", TimestampType())
    .add("stored_at", TimestampType())
    .add(COPIED, BooleanType())
    .add("segment", IntegerType())
)

ENTRY_COLUMNS = (
    StructType()
    .add("topic", StringType())
    .add("namespace", StringType())
    .add("topic_id", IntegerType())
    .add("queue_id", IntegerType())
    .add("queue_offset", LongType())
    .add("log_segment", IntegerType())
    .add("log_offset", LongType())
    .add("tags_code", LongType())
    .add("reconsume_times", ShortType())
    .add("entered_at", TimestampType())
    .add("real_topic", StringType())
    .add("real_queue_id", IntegerType())
    .add("deliver_at", TimestampType())
    .add("due_at", TimestampType())
    .add(COPIED, BooleanType())
    .add("segment", IntegerType())
)

TRANSACTION_COLUMNS = (
    StructType()
    .add("transaction_id", StringType())
    .add("producer_group", StringType())
    .add("namespace", StringType())
    .add("state", StringType())
    .add("prepared_at", TimestampType())
    .add("decided_at", TimestampType())
    .add("decided_by", StringType())
    .add("seconds_to_decision", DoubleType())
    .add("check_times", IntegerType())
    .add("messages", IntegerType())
    .add("remark", StringType())
    .add(COPIED, BooleanType())
    .add("segment", IntegerType())
)

CHECK_COLUMNS = (
    StructType()
    .add("transaction_id", StringType())
    .add("endpoint_url", StringType())
    .add("asked_at", TimestampType())
    .add("counted", BooleanType())
    .add("status", IntegerType())
    .add("latency_ms", IntegerType())
    .add("answer", StringType())
    .add("reason", StringType())
    .add(COPIED, BooleanType())
    .add("segment", IntegerType())
)


TIMER_COLUMNS = (
    StructType()
    .add("message_id", StringType())
    .add("topic", StringType())
    .add("queue_id", IntegerType())
    .add("due_at", TimestampType())
    .add("log_segment", IntegerType())
    .add("log_offset", LongType())
    .add("reconsume_times", ShortType())
)

MESSAGES = Table(Statement(__file__, "read_messages"), MESSAGE_COLUMNS, "stored_at")
ENTRIES = Table(Statement(__file__, "read_entries"), ENTRY_COLUMNS, "entered_at")
ENDED = Table(Statement(__file__, "read_ends"), TRANSACTION_COLUMNS, "decided_at")
UNDECIDED = Table(Statement(__file__, "read_undecided"), TRANSACTION_COLUMNS, "prepared_at")
CHECKS = Table(Statement(__file__, "read_checks"), CHECK_COLUMNS, "asked_at")
TIMERS = Table(Statement(__file__, "read_timers"), TIMER_COLUMNS)


def in_files(columns: StructType) -> StructType:
    """The columns in a file: without the segment, which is in the name of the file's folder."""
    return StructType([column for column in columns if column.name != "segment"])


def stored(columns: StructType) -> StructType:
    """The columns as the database returns them: maps are JSON bytes."""
    return StructType([StructField(column.name, _stored_type(column), column.nullable) for column in columns])


def _stored_type(column: StructField) -> DataType:
    return BinaryType() if isinstance(column.dataType, MapType) else column.dataType
