"""Reads the broker's tables as Spark frames by JDBC."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, MapType, StringType, StructType, TimestampType

from analytics import tables
from analytics.readers import arrow
from analytics.readers.address import Address
from analytics.tables import Table

FETCH_ROWS = 10_000
# The size of the rows that a task fetches at once: 10,000 rows of 4 KiB. If the rows are larger, a task fetches fewer.
FETCH_BYTES = FETCH_ROWS * 4096
MIDDLE_WEIGHT = 256 * 1024
# The end of the name of a column that has a time in microseconds.
MICROS = " in microseconds"


@dataclass(frozen=True, slots=True)
class JdbcSource:
    """A database that frames are read from; `heaviest` is the usual maximum size of a body in bytes."""

    spark: SparkSession
    address: Address
    heaviest: int

    def whole(self, table: Table, first: str, clause: str = "true") -> DataFrame:
        """The rows of a table as a frame, read by one session, which first executes the statement `first`."""
        return self._read(table, [clause], FETCH_ROWS, sessionInitStatement=first)

    def slices(self, table: Table, slices: Sequence[str]) -> DataFrame:
        """The rows of the slices as a frame. The larger the messages (`weight`, in bytes), the fewer are fetched at
        once.
        """
        ranges = steps(self.heaviest) if table is tables.MESSAGES else (("true", FETCH_ROWS),)
        frames = (self._read(table, [f"({each}) AND {bounds}" for each in slices], rows) for bounds, rows in ranges)
        return reduce(DataFrame.unionAll, frames)

    def _read(self, table: Table, clauses: list[str], rows: int, **others: str) -> DataFrame:
        """The rows of the clauses, fetched `rows` at a time."""
        properties = {**self.address.properties, "fetchsize": str(rows), **others}
        frame = self.spark.read.jdbc(self.address.url, _subquery(table), predicates=clauses, properties=properties)
        return _of_table(frame, table.columns)


def _subquery(table: Table) -> str:
    """A table as a subquery for Spark, through which PostgreSQL can still skip partitions.

    A second column has each time in microseconds since 1970: Java's driver moves days before 1582-10-15 to the calendar
    of that time.
    """
    micros = [
        f', (extract(epoch FROM "{name}") * 1000000)::bigint AS "{name}{MICROS}"' for name in _times(table.columns)
    ]
    return f"(SELECT *{''.join(micros)} FROM ({table.statement.text}) AS read) AS source"


def _times(columns: StructType) -> list[str]:
    return [column.name for column in columns if isinstance(column.dataType, TimestampType)]


def _of_table(frame: DataFrame, columns: StructType) -> DataFrame:
    """The columns of the table. Properties that are not JSON stop the export: a null would hide a loss of data."""
    maps = {
        column.name: F.from_json(F.col(column.name).cast(StringType()), column.dataType, {"mode": "FAILFAST"})
        for column in columns
        if isinstance(column.dataType, MapType)
    }
    times = {name: F.timestamp_micros(f"{name}{MICROS}") for name in _times(columns)}
    stored = frame.withColumns(times).to(tables.stored(columns))
    if "body" in columns.names:
        stored = stored.withColumn("body", _body())
    return stored.withColumns(maps).to(columns) if maps else stored


def _body() -> Column:
    """The body before its producer compressed it.

    Only compressed bodies are passed to Python: Spark has no function to decompress them.
    """
    form, body = F.col("body_form"), F.col("body")
    unpack = F.udf(arrow.unpacked, BinaryType(), useArrow=False)
    return F.coalesce(unpack(form, F.when(form.isin(*arrow.COMPRESSED), body)), body)


def steps(heaviest: int) -> Iterator[tuple[str, int]]:
    """Ranges of row size that cover all rows, each with the number of rows to fetch at once.

    `heaviest` is the usual maximum.
    """
    light = FETCH_BYTES // FETCH_ROWS
    middle = max(light, min(MIDDLE_WEIGHT, heaviest))
    yield f"weight <= {light:d}", FETCH_ROWS
    yield f"weight > {light:d} AND weight <= {middle:d}", FETCH_BYTES // middle
    yield f"weight > {middle:d}", max(1, FETCH_BYTES // max(heaviest, middle))
