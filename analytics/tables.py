"""The tables of the export: the statement that reads each, and its columns as the files hold them."""

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

# A column: in files the name of a folder; the data source computes it.
DAY = "day"


@dataclass(frozen=True, slots=True)
class Table:
    """A statement that reads rows of the export, and the columns of a row; its files lie by the day of `day_of`."""

    statement: Statement[Any]
    columns: StructType
    day_of: str | None = None


# JSON in the database.
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
    """The columns as a file has them: the segment is in the name of its folder."""
    return StructType([column for column in columns if column.name != "segment"])


def stored(columns: StructType) -> StructType:
    """The columns as the database has them: maps are JSON bytes."""
    return StructType([StructField(column.name, _stored_type(column), column.nullable) for column in columns])


def _stored_type(column: StructField) -> DataType:
    return BinaryType() if isinstance(column.dataType, MapType) else column.dataType
