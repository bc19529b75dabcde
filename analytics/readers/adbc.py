"""Reads the broker's tables as Spark frames by ADBC, in Spark's Python workers. No JDBC driver is needed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow
from adbc_driver_manager import AdbcConnection
from pyspark.sql import DataFrame, SparkSession

from analytics import connections
from analytics.files import days
from analytics.readers import arrow
from analytics.rows import Backend
from analytics.tables import Table


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

    def files(self, table: Table, slices: Sequence[str], to: Path) -> list[str]:
        """Writes the rows of the slices to new files, in a folder that the workers can write to. Returns their paths.

        Each task reads a slice and writes its own files: no row becomes a Java object.
        """
        queries = [table.query(clause) for clause in slices]
        write = partial(_files, self.conninfo, queries, table.arrow, to, table.day_of)
        numbers = self.spark.sparkContext.parallelize(range(len(queries)), len(queries))
        return numbers.mapPartitions(write).collect()

    def _read(self, queries: Sequence[str], table: Table, first: Sequence[str] = ()) -> DataFrame:
        read = partial(arrow.numbered, self.conninfo, queries, table.arrow, first)
        return self._numbers(queries).mapInArrow(read, table.columns)

    def _numbers(self, queries: Sequence[str]) -> DataFrame:
        """A frame with one row for each query, its number; each row is read by a separate task."""
        return self.spark.range(0, len(queries), 1, len(queries))


def bind(connection: AdbcConnection) -> None:
    """Binds the server's process of a reader's session to the processors of this process."""
    [found] = [row for rows in arrow.rows(connection, connections.FIND_BACKEND.text) for row in rows.to_pylist()]
    connections.bind_backend(Backend(**found))


def _files(
    conninfo: str, queries: Sequence[str], schema: pyarrow.Schema, to: Path, day_of: str | None, numbers: Iterable[int]
) -> Iterator[str]:
    """Writes the rows of the queries with these numbers to new files, in a Spark worker. Yields the paths."""
    for number in numbers:
        yield from _write(conninfo, schema, to, day_of, queries[number])


def _write(
    conninfo: str, schema: pyarrow.Schema, to: Path, day_of: str | None, query: str, first: str = ""
) -> list[str]:
    """Writes the rows of the query to new files and returns their paths. Runs in a worker or in the command."""
    files = days.DayFiles(to, schema, day_of)
    for batch in arrow.batches(conninfo, query, schema, first.split(";") if first else (), bind):
        files.add(batch)
    return files.close()
