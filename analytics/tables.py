"""The tables of the export: the statement that reads each table, and its columns in the files."""

from dataclasses import dataclass
from typing import Any

import pyarrow
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructField, StructType

from store.db.statements import Statement

# The column of the day. Files have it in the name of their folder; the data source computes it.
DAY = "day"
# Whether a row is a copy from before the split that made its cell: another cell has the original.
COPIED = "copied"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the export: its statement and columns. By the column `day_of` its files are sorted into days."""

    statement: Statement[Any]
    columns: StructType
    day_of: str | None = None

    @property
    def arrow(self) -> pyarrow.Schema:
        """The columns in the types of Arrow."""
        return arrow(self.columns)

    def query(self, clause: str, columns: StructType | None = None) -> str:
        """The query for the rows of one slice, with all columns or only `columns`; ids are text.

        The query wraps the statement in a subquery. PostgreSQL still skips partitions and does not compute unselected
        columns. A body is selected together with its form, which says how to decompress it.
        """
        fields = list(columns or self.columns)
        names = {field.name for field in fields}
        if "body" in names and "body_form" not in names:
            fields.append(self.columns["body_form"])
        selected = ", ".join(map(self._selected, fields))
        return f"SELECT {selected} FROM ({self.statement.text}) AS source WHERE {clause}"

    def _selected(self, column: StructField) -> str:
        name = column.name
        if name == DAY:
            return f'("{self.day_of}" AT TIME ZONE \'UTC\')::date AS "{DAY}"'
        return f'"{name}"::text AS "{name}"' if isinstance(column.dataType, StringType) else f'"{name}"'


# The types of Spark that have no name in one word. `properties` is JSON in the database, a map in Spark.
TYPES = {"strings": ArrayType(StringType()), "properties": MapType(StringType(), StringType())}


def columns(text: str) -> StructType:
    """A schema from text such as `id long, body binary`: each column has a name and a type, of Spark or of TYPES."""
    found = StructType()
    for name, kind in (column.split() for column in text.split(",")):
        found.add(name, TYPES.get(kind, kind))
    return found


MESSAGE_COLUMNS = columns(
    """log_offset long, copy_of long, message_id string, topic string, namespace string, queue_id integer,
    producer_group string, transaction_id string, tags string, keys strings, sharding_key string, traceparent string,
    properties properties, body binary, body_bytes integer, body_form string, born_at timestamp, stored_at timestamp,
    copied boolean, segment integer"""
)
ENTRY_COLUMNS = columns(
    """topic string, namespace string, topic_id integer, queue_id integer, queue_offset long, log_segment integer,
    log_offset long, tags_code long, reconsume_times short, entered_at timestamp, real_topic string,
    real_queue_id integer, deliver_at timestamp, due_at timestamp, copied boolean, segment integer"""
)
TRANSACTION_COLUMNS = columns(
    """transaction_id string, producer_group string, namespace string, state string, prepared_at timestamp,
    decided_at timestamp, decided_by string, seconds_to_decision double, check_times integer, messages integer,
    remark string, copied boolean, segment integer"""
)
CHECK_COLUMNS = columns(
    """transaction_id string, endpoint_url string, asked_at timestamp, counted boolean, status integer,
    latency_ms integer, answer string, reason string, copied boolean, segment integer"""
)
TIMER_COLUMNS = columns(
    """message_id string, topic string, queue_id integer, due_at timestamp, log_segment integer, log_offset long,
    reconsume_times short"""
)

MESSAGES = Table(Statement(__file__, "read_messages"), MESSAGE_COLUMNS, "stored_at")
ENTRIES = Table(Statement(__file__, "read_entries"), ENTRY_COLUMNS, "entered_at")
ENDED = Table(Statement(__file__, "read_ends"), TRANSACTION_COLUMNS, "decided_at")
UNDECIDED = Table(Statement(__file__, "read_undecided"), TRANSACTION_COLUMNS, "prepared_at")
CHECKS = Table(Statement(__file__, "read_checks"), CHECK_COLUMNS, "asked_at")
TIMERS = Table(Statement(__file__, "read_timers"), TIMER_COLUMNS)


def arrow(columns: StructType) -> pyarrow.Schema:
    """The columns in the types of Arrow, with times in UTC."""
    return to_arrow_schema(columns, timezone="UTC")


def arrow_of_files(columns: StructType) -> pyarrow.Schema:
    """The columns in a file: without the segment, which is in the name of the file's folder."""
    return arrow(StructType([column for column in columns if column.name != "segment"]))


def stored(columns: StructType) -> StructType:
    """The columns as the database returns them: maps are JSON bytes."""
    types = {each.name: BinaryType() if isinstance(each.dataType, MapType) else each.dataType for each in columns}
    return StructType([StructField(name, kind) for name, kind in types.items()])
