"""Reads the broker's tables as Spark frames by ADBC, in Spark's Python workers. No JDBC driver is needed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from analytics import connections
from analytics.files import days
from analytics.readers import arrow
from analytics.rows import Backend
from analytics.tables import Table

if TYPE_CHECKING:
    from adbc_driver_postgresql import dbapi


# The schema of the frame with the paths of files that tasks have written.
FILES = StructType([StructField("path", StringType())])


@dataclass(frozen=True, slots=True)
class AdbcSource:
    """A database that frames are read from. The connection string is in the closures of tasks, and so not in plans."""

    spark: SparkSession
    conninfo: str = field(repr=False)

    def whole(self, table: Table, first: str, clause: str = "true") -> DataFrame:
        """The rows of a table as a frame, read by one session, which first executes the statement `first`."""
        return self._read([table.query(clause)], table, first.split(";"))

    def slices(self, table: Table, slices: Sequence[str]) -> DataFrame:
        """The rows of the slices as a frame, with one task per slice."""
        return self._read([table.query(clause) for clause in slices], table)

    def save_now(self, table: Table, first: str, clause: str, to: Path) -> None:
        """Writes rows of a table from this process: with only one session, a task in a worker would gain nothing."""
        write = partial(_write, self.conninfo, table.arrow, to, table.day_of, first=first)
        days.finish(to, write(table.query(clause)))

    def files(self, table: Table, slices: Sequence[str], to: Path) -> DataFrame:
        """The paths of new files with the rows of the slices, in a folder that the workers can write to.

        Each task reads a slice and writes its own files: no row becomes a Java object.
        """
        queries = [table.query(clause) for clause in slices]
        write = partial(_files, self.conninfo, queries, table.arrow, to, table.day_of)
        return self._numbers(queries).mapInArrow(write, FILES)

    def _read(self, queries: Sequence[str], table: Table, first: Sequence[str] = ()) -> DataFrame:
        read = partial(arrow.numbered, self.conninfo, queries, table.arrow, first)
        return self._numbers(queries).mapInArrow(read, table.columns)

    def _numbers(self, queries: Sequence[str]) -> DataFrame:
        """A frame with one row for each query, its number; each row is read by a separate task."""
        return self.spark.range(0, len(queries), 1, len(queries))


def bind(cursor: "dbapi.Cursor") -> None:
    """Binds the server's process of a reader's session to the processors of this process."""
    cursor.execute(connections.FIND_BACKEND.text)
    [found] = cursor.fetchall()
    connections.bind_backend(Backend(*found))


def _files(
    conninfo: str,
    queries: Sequence[str],
    schema: pyarrow.Schema,
    to: Path,
    day_of: str | None,
    numbers: Iterable[pyarrow.RecordBatch],
) -> Iterator[pyarrow.RecordBatch]:
    """Writes the rows of the queries with these numbers to new files, in a Spark worker. Yields the paths."""
    written = [
        path
        for batch in numbers
        for number in batch.column(0).to_pylist()
        for path in _write(conninfo, schema, to, day_of, queries[number])
    ]
    yield pyarrow.RecordBatch.from_pydict({"path": written}, pyarrow.schema([("path", pyarrow.string())]))


def _write(
    conninfo: str, schema: pyarrow.Schema, to: Path, day_of: str | None, query: str, first: str = ""
) -> list[str]:
    """Writes the rows of the query to new files and returns their paths. Runs in a worker or in the command."""
    files = days.DayFiles(to, schema, day_of)
    for batch in arrow.batches(conninfo, query, schema, first.split(";") if first else (), bind):
        files.add(batch)
    return files.close()
