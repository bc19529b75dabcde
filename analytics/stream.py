"""The broker's tables for any Spark: a data source `mqbroker`, for `spark.read` and for `spark.readStream`.

    spark.dataSource.register(BrokerSource)
    spark.read.format("mqbroker").option("table", "entries").load()
    spark.readStream.format("mqbroker").load()

The database is that of DATABASE_URL where Spark's driver runs, or of the option `url`. Spark hides the value of an
option of that name in plans.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from analytics import closed, connections
from analytics.closed import ClosedRange, Span
from analytics.connections import Connection
from analytics.errors import HoleFound, LogBehind, OptionRefused
from analytics.readers import address, arrow, counts, slices
from analytics.readers.adbc import arrow_schema
from analytics.readers.source import query
from analytics.tables import CHECKS, ENDED, ENTRIES, MESSAGES, TIMERS, UNDECIDED, Table

TABLES = {"messages": MESSAGES, "entries": ENTRIES, "transactions": ENDED, "checks": CHECKS, "timers": TIMERS}
# Writers wait for the snapshot of a closed range, if only for milliseconds.
SECONDS_BETWEEN_SNAPSHOTS = 2.0


@dataclass
class Slice(InputPartition):
    """One task: the rows of a query, whose segment must still be there when it finds none; or rows read before."""

    query: str = ""
    segment: ClosedRange | None = None
    rows: bytes = b""


class BrokerSource(DataSource):
    """The tables of the export, as of one moment; the messages also as a stream in the order of the commit log."""

    @classmethod
    def name(cls) -> str:
        """The name to give to `format`."""
        return "mqbroker"

    def schema(self) -> StructType:
        """The columns of the table. Raises OptionRefused."""
        return TABLES[self.table].columns

    def reader(self, schema: StructType) -> "BrokerReader":
        """Reads the table once."""
        return BrokerReader(self.conninfo, self.table, self.rows_per_slice)

    def streamReader(self, schema: StructType) -> "BrokerStream":
        """Reads the messages from the oldest that is kept. Raises OptionRefused for another table."""
        if self.table != "messages":
            raise OptionRefused(f"The table {self.table} has no order to stream by: read it whole, or stream messages.")
        return BrokerStream(self.conninfo, self.rows_per_slice)

    @property
    def table(self) -> str:
        """The option `table`. Raises OptionRefused."""
        table = self.options.get("table", "messages")
        if table not in TABLES:
            raise OptionRefused(f"There is no table {table}: give one of {', '.join(TABLES)}.")
        return str(table)

    @property
    def rows_per_slice(self) -> int:
        """The option `rows_per_slice`: the most rows of one task. Raises OptionRefused."""
        given = str(self.options.get("rows_per_slice", slices.SLICE_ROWS))
        if not given.isdecimal() or int(given) < 1:
            raise OptionRefused(f"rows_per_slice is {given}: give a whole number from 1 on.")
        return int(given)

    @property
    def conninfo(self) -> str:
        """The connection string for libpq, of the option `url` or of DATABASE_URL. Raises OptionRefused."""
        url = self.options.get("url") or os.environ.get("DATABASE_URL")
        if not url:
            raise OptionRefused("No database is named: set DATABASE_URL where Spark's driver runs, or the option url.")
        return address.for_export(url)


class BrokerReader(DataSourceReader):
    """Reads one table in slices of a closed range."""

    def __init__(self, conninfo: str, table: str, rows_per_slice: int) -> None:
        self.conninfo = conninfo
        self.table = table
        self.rows_per_slice = rows_per_slice

    def partitions(self) -> Sequence[InputPartition]:
        """The slices of the range that is closed now. Raises LogBusy."""
        with closed.quiet(self.conninfo) as (reader, first):
            ranges = closed.find(reader)
            found = [part for one in each(ranges) for part in PLANS[self.table](one, self.rows_per_slice)]
            # What changes is read now: its snapshot ends with this block.
            if self.table == "transactions":
                found += self._now(UNDECIDED, first, "true")
            if self.table == "timers":
                found += self._now(TIMERS, first, "true")
            if self.table == "checks":
                found += self._now(CHECKS, first, f"segment_id = {ranges.segments[-1].id:d}")
        return found

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """In a worker: the rows of one slice. Raises SegmentDropped."""
        assert isinstance(partition, Slice)
        return rows(self.conninfo, partition, TABLES[self.table], COUNTS.get(self.table))

    def _now(self, table: Table, first: str, clause: str) -> list[Slice]:
        batches = arrow.batches(self.conninfo, query(table, clause), arrow_schema(table), first.split(";"))
        return [Slice(rows=_packed(batch)) for batch in batches]


class BrokerStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the messages in the order of the commit log: an offset is the first log offset that is not read yet.

    With the trigger `availableNow` a stream ends at what is closed when it begins. Of a source that could not say that
    Spark would make one batch: after a kill the one that was under way, and nothing of what came since.
    """

    def __init__(self, conninfo: str, rows_per_slice: int) -> None:
        self.conninfo = conninfo
        self.rows_per_slice = rows_per_slice
        self._looked_at = -SECONDS_BETWEEN_SNAPSHOTS
        self._end: int | None = None
        self._is_to_end = False

    def prepareForTriggerAvailableNow(self) -> None:
        """Has the stream end at what is closed now. Raises LogBusy."""
        self._look()
        self._is_to_end = True

    def initialOffset(self) -> dict[str, int]:
        """The oldest message that is kept."""
        with connections.connect(self.conninfo) as reader:
            spans = _spans(closed.find(reader))
        return {"log_offset": spans[0][1].first if spans else 0}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:
        """The end of the closed range, at most two seconds old. Raises LogBusy, LogBehind."""
        if not self._is_to_end and time.monotonic() - self._looked_at >= SECONDS_BETWEEN_SNAPSHOTS:
            self._look()
        # Where retention dropped all that there was, there is nothing to read.
        end = start["log_offset"] if self._end is None else self._end
        if end < start["log_offset"]:
            raise LogBehind(
                f"This stream has read the log offsets below {start['log_offset']}, and the log ends before {end}: a "
                "back-up was restored, or the checkpoint is of another database. Begin a new checkpoint."
            )
        return {"log_offset": end}

    def _look(self) -> None:
        with closed.quiet(self.conninfo) as (reader, _):
            spans = _spans(closed.find(reader))
        self._end = spans[-1][1].last + 1 if spans else None
        self._looked_at = time.monotonic()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The slices from one offset to another. Raises HoleFound when retention dropped some of them."""
        wanted = Span(start["log_offset"], end["log_offset"] - 1)
        if wanted.last < wanted.first:
            return []
        with connections.connect(self.conninfo) as reader:
            spans = _spans(closed.find(reader))
        _require_kept(wanted, spans)
        return [
            part
            for segment, span in spans
            if span.first <= wanted.last and span.last >= wanted.first
            for part in self._slices(segment, Span(max(span.first, wanted.first), min(span.last, wanted.last)))
        ]

    def _slices(self, segment: ClosedRange, span: Span) -> list[Slice]:
        clauses = slices.of_span("log_offset", segment.segments[0].id, span, self.rows_per_slice)
        return _of(MESSAGES, clauses, segment)

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """In a worker: the rows of one slice. Raises SegmentDropped."""
        assert isinstance(partition, Slice)
        return rows(self.conninfo, partition, MESSAGES, counts.messages)


def rows(
    conninfo: str, part: Slice, table: Table, count: Callable[[Connection, ClosedRange], int] | None
) -> Iterator[pyarrow.RecordBatch]:
    """The rows of a slice. Raises SegmentDropped where a segment is gone that had rows when the slice was planned."""
    schema = arrow_schema(table)
    if part.rows:
        yield from pyarrow.ipc.open_stream(part.rows)
        return
    if not part.query:
        return
    found = 0
    for batch in arrow.batches(conninfo, part.query, schema):
        found += batch.num_rows
        yield batch
    if not found and part.segment and count:
        with connections.connect(conninfo) as broker:
            count(broker, part.segment)


def each(ranges: ClosedRange) -> list[ClosedRange]:
    """The range in pieces of one segment."""
    return [ClosedRange(ranges.taken_at, [segment]) for segment in ranges.segments]


def _messages(of: ClosedRange, most: int) -> list[Slice]:
    [segment] = of.segments
    return _of(MESSAGES, slices.of_span("log_offset", segment.id, segment.messages, most), of)


def _entries(of: ClosedRange, most: int) -> list[Slice]:
    [segment] = of.segments
    return _of(ENTRIES, slices.of_queues(segment.id, segment.entries, most), of)


def _ended(of: ClosedRange, most: int) -> list[Slice]:
    [segment] = of.segments
    return _of(ENDED, slices.of_span("operation_id", segment.id, segment.operations, most), of)


def _checks(of: ClosedRange, most: int) -> list[Slice]:
    """Of a closed segment: the checks of the open one are read by the snapshot."""
    [segment] = of.segments
    return [] if segment.state == "open" else _of(CHECKS, [f"segment_id = {segment.id:d}"], None)


def _none(of: ClosedRange, most: int) -> list[Slice]:
    """Of a table that is read by the snapshot only."""
    return []


def _of(table: Table, clauses: Sequence[str], segment: ClosedRange | None) -> list[Slice]:
    return [Slice(query(table, clause), segment) for clause in clauses]


PLANS = {
    "messages": _messages,
    "entries": _entries,
    "transactions": _ended,
    "checks": _checks,
    "timers": _none,
}
COUNTS = {"messages": counts.messages, "entries": counts.entries, "transactions": counts.ends}


def _packed(batch: pyarrow.RecordBatch) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _spans(ranges: ClosedRange) -> list[tuple[ClosedRange, Span]]:
    return [(one, span) for one in each(ranges) if (span := one.segments[0].messages)]


def _require_kept(wanted: Span, spans: Sequence[tuple[ClosedRange, Span]]) -> None:
    lowest = spans[0][1].first if spans else wanted.last + 1
    if wanted.first < lowest:
        raise HoleFound(
            f"Retention dropped the log offsets {wanted.first} to {lowest - 1} before this stream read them: begin a "
            "new checkpoint, which reads on from the oldest message that is kept."
        )
