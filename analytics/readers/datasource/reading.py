"""Reads a table once, at one moment: the slices of a closed range, between offsets if the user gives any."""

from collections.abc import Iterator, Sequence

import pyarrow
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from analytics import closed
from analytics.closed import ClosedRange
from analytics.connections import Connection
from analytics.readers import arrow
from analytics.readers.datasource.chosen import Choice
from analytics.readers.datasource.options import LATEST, Bound
from analytics.readers.datasource.orders import ORDERS, positioned
from analytics.readers.datasource.published import OPEN, TABLES
from analytics.readers.datasource.slices import Slice, packed, rows
from analytics.readers.source import query
from analytics.tables import Table


class BrokerReader(DataSourceReader):
    """Reads one table, by slices of a closed range: the rows from `start` to `end`, where the table has an order."""

    def __init__(
        self,
        conninfo: str,
        table: str,
        columns: StructType,
        choice: Choice,
        start: Bound,
        end: Bound,
        rows_per_slice: int,
    ) -> None:
        self.conninfo = conninfo
        self.name = table
        self.columns = columns
        self.choice = choice
        self.start = start
        self.end = end
        self.rows_per_slice = rows_per_slice

    def partitions(self) -> Sequence[InputPartition]:
        """The slices of the range that is closed at this moment. Raises LogBusy, OptionRefused, HoleFound."""
        with closed.quiet(self.conninfo) as (reader, first):
            table = TABLES[self.name]
            ranges, chosen = self.choice.applied(reader, closed.find(reader), table.columns.names)
            final = [
                Slice(query(table, f"({clause}) AND {chosen}", self.columns), segment, kind)
                for segment, clause, kind in self._final(reader, ranges)
            ]
            # Rows that can change are read now, because the snapshot ends with this block.
            return [
                *final,
                *(part for of, clause in self._open(ranges) for part in self._now(of, first, f"{clause} AND {chosen}")),
            ]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The rows of one slice, read in a Spark worker. Raises SegmentDropped if retention dropped the segment."""
        return rows(self.conninfo, partition, self.columns)

    def _final(self, reader: Connection, ranges: ClosedRange) -> Iterator[tuple[int, str, str]]:
        """The segment of each slice of rows that no longer change, its WHERE clause, and the kind of its rows."""
        if self.name == "checks":
            yield from ((of.id, f"segment_id = {of.id:d}", "") for of in ranges.segments if of.state != "open")
        if self.name in ORDERS:
            order, kind = ORDERS[self.name]
            start, end = (positioned(order, reader, ranges, bound) for bound in (self.start, self.end))
            for segment, clause in order.clauses(ranges, start, end, self.rows_per_slice):
                yield segment, clause, kind

    def _open(self, ranges: ClosedRange) -> Iterator[tuple[Table, str]]:
        """The table and the WHERE clause of rows that can change."""
        # Undecided transactions have no place in the order: they follow the last one that has ended.
        if self.name == "transactions" and self.end == Bound(LATEST):
            yield OPEN, "true"
        elif self.name == "timers":
            yield TABLES["timers"], "true"
        elif self.name == "checks":
            yield TABLES["checks"], f"segment_id = {ranges.segments[-1].id:d}"

    def _now(self, table: Table, first: str, clause: str) -> Sequence[Slice]:
        schema = to_arrow_schema(self.columns, timezone="UTC")
        return packed(arrow.batches(self.conninfo, query(table, clause, self.columns), schema, first.split(";")))
