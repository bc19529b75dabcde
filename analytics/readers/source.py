"""What the export reads by: frames of slices of the broker's tables, by JDBC or by ADBC."""

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from analytics.tables import DAY, Table


class Source(Protocol):
    """A way from the database to Spark; the frames of all ways are equal."""

    @property
    def spark(self) -> SparkSession:
        """The session that reads."""

    def whole(self, table: Table, first: str, clause: str = "true") -> DataFrame:
        """The rows of a table, read by one session that begins with the statement `first`."""

    def slices(self, table: Table, slices: Sequence[str]) -> DataFrame:
        """The rows of the slices, one task each; Spark wants one slice at least."""

    def weighed(self, table: Table, slices: Sequence[str]) -> DataFrame:
        """The same for rows of many sizes, whose `weight` in bytes is a column."""


def query(table: Table, clause: str, columns: StructType | None = None) -> str:
    """The rows of one slice of a table, with all of its columns or with these; ids as text.

    PostgreSQL prunes the partitions, and does not compute what is not selected, through the subquery. A body comes with
    its form, by which a compressed one is unpacked.
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
