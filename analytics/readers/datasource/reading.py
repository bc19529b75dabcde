"""Reads a table once, at one moment: the slices of a closed range, limited by filters and columns."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from analytics import closed
from analytics.closed import ClosedRange, ClosedSegment, QueueSpan
from analytics.readers import arrow, slices
from analytics.readers.datasource.published import OPEN, TABLES
from analytics.readers.datasource.pushed import Pushed
from analytics.readers.datasource.slices import Slice, packed, rows
from analytics.readers.source import query
from analytics.tables import Table

# For each table, the column by which a segment's rows are cut into slices, and the field of SegmentRows that counts
# them.
BY_SPAN = {"messages": ("log_offset", "messages"), "transactions": ("operation_id", "operations")}


class BrokerReader(DataSourceReader):
    """Reads one table, by slices of a closed range."""

    def __init__(self, conninfo: str, table: str, columns: StructType, rows_per_slice: int) -> None:
        self.conninfo = conninfo
        self.name = table
        self.columns = columns
        self.rows_per_slice = rows_per_slice
        self.pushed = Pushed(TABLES[table])

    def partitions(self) -> Sequence[InputPartition]:
        """The slices of the range that is closed at this moment. Raises LogBusy."""
        with closed.quiet(self.conninfo) as (reader, first):
            ranges = closed.find(reader)
            found = [part for segment in ranges.segments if self._may_hold(segment.id) for part in self._of(segment)]
            # Rows that can change are read now, because the snapshot ends with this block.
            found += self._of_moment(ranges, first)
        return found

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The rows of one slice, read in a Spark worker. Raises SegmentDropped if retention dropped the segment."""
        return rows(self.conninfo, partition, self.columns)

    def _may_hold(self, segment_id: int) -> bool:
        return self.pushed.within("segment", closed.Span(segment_id, segment_id)) is not None

    def _of(self, segment: ClosedSegment) -> list[Slice]:
        """The slices of one segment's final rows."""
        if self.name in BY_SPAN:
            column, kind = BY_SPAN[self.name]
            span = segment.messages if kind == "messages" else segment.operations
            return self._slices(
                slices.of_span(column, segment.id, self._within(column, span), self.rows_per_slice), segment, kind
            )
        if self.name in ("entries", "committed"):
            return self._slices(
                slices.of_queues(segment.id, self._queues(segment), self.rows_per_slice), segment, "entries"
            )
        if self.name == "checks" and segment.state != "open":
            return self._slices([f"segment_id = {segment.id:d}"], segment, "")
        return []

    def _within(self, column: str, span: closed.Span | None) -> closed.Span | None:
        return self.pushed.within(column, span) if column in self.pushed.table.columns.names else span

    def _queues(self, segment: ClosedSegment) -> list[QueueSpan]:
        return [
            replace(queue, span=span)
            for queue in segment.entries
            if (span := self.pushed.within("queue_offset", queue.span))
            and self.pushed.within("queue_id", closed.Span(queue.queue_id, queue.queue_id))
        ]

    def _slices(self, clauses: Sequence[str], segment: ClosedSegment, kind: str) -> list[Slice]:
        return [Slice(self._query(self.pushed.table, clause), segment.id, kind) for clause in clauses]

    def _of_moment(self, ranges: ClosedRange, first: str) -> Sequence[Slice]:
        if self.name == "transactions":
            return self._now(OPEN, first, "true")
        if self.name == "timers":
            return self._now(TABLES["timers"], first, "true")
        open_segment = ranges.segments[-1].id
        if self.name == "checks" and self._may_hold(open_segment):
            return self._now(TABLES["checks"], first, f"segment_id = {open_segment:d}")
        return []

    def _now(self, table: Table, first: str, clause: str) -> Sequence[Slice]:
        schema = to_arrow_schema(self.columns, timezone="UTC")
        return packed(arrow.batches(self.conninfo, self._query(table, clause), schema, first.split(";")))

    def _query(self, table: Table, clause: str) -> str:
        return query(table, " AND ".join([f"({clause})", *self.pushed.conditions(table)]), self.columns)


class FilteringReader(BrokerReader):
    """A BrokerReader that leaves Spark's filters to PostgreSQL.

    Spark 4.3 keeps one plan for all uses of a loaded frame: the filters of the last use then apply to earlier uses too,
    which lose rows. So an option turns this on, for frames that are used only once.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes the filters that PostgreSQL applies in the same way as Spark; returns the others."""
        return self.pushed.take(filters)
