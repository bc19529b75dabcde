"""The interface by which the export reads the broker's tables as frames, implemented for JDBC and for ADBC."""

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from analytics.tables import DAY, Table


class Source(Protocol):
    """A way to read the database with Spark. All ways return equal frames."""

    @property
    def spark(self) -> SparkSession:
        """The Spark session that reads."""

    def whole(self, table: Table, first: str, clause: str = "true") -> DataFrame:
        """The rows of a table as a frame, read by one session, which first executes the statement `first`."""

    def slices(self, table: Table, slices: Sequence[str]) -> DataFrame:
        """The rows of the slices, of which there is at least one, as a frame with tasks for each slice."""


def query(table: Table, clause: str, columns: StructType | None = None) -> str:
    """The query for the rows of one slice of a table, with all columns or only `columns`; ids are text.

    The query wraps the table's statement in a subquery. PostgreSQL still skips partitions and does not compute
    unselected columns. A body is selected together with its form, which says how to decompress it.
    """
    fields = list(columns or table.columns)
    names = {field.name for field in fields}
    if "body" in names and "body_form" not in names:
        fields.append(table.columns["body_form"])
    selected = ", ".join(_column(table, field) for field in fields)
    return f"SELECT {selected} FROM ({table.statement.text}) AS source WHERE {clause}"


def _column(table: Table, column: StructField) -> str:
    name = column.name
    if name == DAY:
        return f'("{table.day_of}" AT TIME ZONE \'UTC\')::date AS "{DAY}"'
    return f'"{name}"::text AS "{name}"' if isinstance(column.dataType, StringType) else f'"{name}"'
