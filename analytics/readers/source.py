"""What the export reads by: frames of slices of the broker's tables, by JDBC or by ADBC."""

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType

from analytics.tables import Table


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


def query(table: Table, clause: str) -> str:
    """The rows of one slice of a table, ids as text.

    PostgreSQL prunes the partitions through the subquery.
    """
    columns = ", ".join(_column(field.name, field.dataType) for field in table.columns)
    return f"SELECT {columns} FROM ({table.statement.text}) AS source WHERE {clause}"


def _column(name: str, type_: object) -> str:
    return f'"{name}"::text AS "{name}"' if isinstance(type_, StringType) else f'"{name}"'
