"""Reads a table once, at one moment: the slices of a closed range, between offsets if the user gives any."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from analytics import closed, connections, tables
from analytics.closed import ClosedRange
from analytics.connections import Connection, read
from analytics.errors import SegmentDropped
from analytics.readers import arrow
from analytics.readers.datasource.chosen import Choice
from analytics.readers.datasource.options import LATEST, Bound
from analytics.readers.datasource.orders import ORDERS, positioned
from analytics.readers.datasource.published import OPEN, TABLES
from analytics.rows import SegmentRows
from analytics.tables import Table
from store.db.statements import Statement

FIND_SEGMENT_ROWS = Statement(__file__, "find_segment_rows", SegmentRows)


@dataclass
class Slice(InputPartition):
    """One task: reads the rows of a query, or returns rows that were read before.

    When the slice was planned, its `segment` had rows of the kind `of`, a field of SegmentRows. If the query finds no
    row, the segment must still have such rows; otherwise it was dropped.
    """

    query: str = ""
    segment: int | None = None
    of: str = ""
    rows: bytes = b""


def rows(conninfo: str, part: InputPartition, columns: StructType) -> Iterator[pyarrow.RecordBatch]:
    """The rows of a slice, read in a Spark worker. Raises SegmentDropped if the segment was dropped."""
    if not isinstance(part, Slice):
        # For a table without slices, Spark makes one empty partition.
        return
    if part.rows:
        yield from pyarrow.ipc.open_stream(part.rows)
        return
    found = 0
    for batch in arrow.batches(conninfo, part.query, tables.arrow(columns)):
        found += batch.num_rows
        yield batch
    if not found and part.of:
        _require_kept(conninfo, part)


def packed(batches: Iterator[pyarrow.RecordBatch]) -> Sequence[Slice]:
    """Rows that can change, which were read at planning, packed into slices."""
    return [Slice(rows=_packed(batch)) for batch in batches]


def _packed(batch: pyarrow.RecordBatch) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _require_kept(conninfo: str, part: Slice) -> None:
    with connections.connect(conninfo) as broker:
        [kept] = read(broker, FIND_SEGMENT_ROWS, {"segment_id": part.segment})
    if not getattr(kept, part.of):
        raise SegmentDropped(f"Retention dropped segment {part.segment} while it was read: read again.")


@dataclass
class BrokerReader(DataSourceReader):
    """Reads one table, by slices of a closed range: the rows from `start` to `end`, where the table has an order."""

    conninfo: str
    name: str
    columns: StructType
    choice: Choice
    start: Bound
    end: Bound
    rows_per_slice: int

    def partitions(self) -> Sequence[InputPartition]:
        """The slices of the range that is closed at this moment. Raises LogBusy, OptionRefused, HoleFound."""
        with closed.quiet(self.conninfo) as (reader, first):
            table = TABLES[self.name]
            ranges, chosen = self.choice.applied(reader, closed.find(reader), table.columns.names)
            final = [
                Slice(table.query(f"({clause}) AND {chosen}", self.columns), segment, kind)
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
        # Undecided transactions have no operation id yet, so they come after all ended transactions.
        if self.name == "transactions" and self.end == Bound(LATEST):
            yield OPEN, "true"
        elif self.name == "timers":
            yield TABLES["timers"], "true"
        elif self.name == "checks":
            yield TABLES["checks"], f"segment_id = {ranges.segments[-1].id:d}"

    def _now(self, table: Table, first: str, clause: str) -> Sequence[Slice]:
        schema = tables.arrow(self.columns)
        return packed(arrow.batches(self.conninfo, table.query(clause, self.columns), schema, first.split(";")))
