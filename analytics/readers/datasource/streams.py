"""A stream of a table. Each batch reads the rows of a closed range between two positions."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from analytics import closed, connections
from analytics.closed import ClosedRange
from analytics.connections import Connection
from analytics.readers.datasource.chosen import Choice
from analytics.readers.datasource.options import Bound
from analytics.readers.datasource.orders import ORDERS, Position, positioned
from analytics.readers.datasource.published import TABLES
from analytics.readers.datasource.reading import Slice, rows

# To find a closed range, a stream takes a snapshot, for which writers wait some milliseconds.
SECONDS_BETWEEN_SNAPSHOTS = 2.0


@dataclass
class BrokerStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a table in the order of its offsets. A position has the first offsets that were not read.

    With the trigger `availableNow` a stream ends at the end of the range that was closed when the stream began. For a
    source without this support Spark would run only one batch: after a kill it would repeat the unfinished batch and
    read nothing newer.
    """

    conninfo: str
    name: str
    columns: StructType
    choice: Choice
    starting: Bound
    rows_per_slice: int
    most_per_trigger: int | None
    _looked_at: float = -SECONDS_BETWEEN_SNAPSHOTS
    _closed: ClosedRange | None = None
    _is_to_end: bool = False

    def __post_init__(self) -> None:
        self.table = TABLES[self.name]
        self.order, self.kind = ORDERS[self.name]

    def prepareForTriggerAvailableNow(self) -> None:
        """Makes the stream end with the rows that are final at this moment. Raises LogBusy."""
        self._look()
        self._is_to_end = True

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of one batch: the option maxOffsetsPerTrigger, or all available rows."""
        return ReadMaxRows(self.most_per_trigger) if self.most_per_trigger else ReadAllAvailable()

    def initialOffset(self) -> Position:
        """The position at which a stream without a checkpoint begins, by its options. Raises LogBusy, OptionRefused."""
        with closed.quiet(self.conninfo) as (reader, _):
            return positioned(self.order, reader, self._find(reader)[0], self.starting)

    def latestOffset(self, start: Position, limit: ReadLimit) -> Position:
        """The end of the next batch: the end of the closed range, at most two seconds old, or of the limit.

        Raises LogBusy, LogBehind.
        """
        end = self.order.end(self._looked(), start)
        return self.order.limited(start, end, limit.max_rows) if isinstance(limit, ReadMaxRows) else end

    def reportLatestOffset(self) -> Position | None:
        """The end of the latest closed range that was found. Spark computes the lag of the stream from it."""
        return None if self._closed is None else self.order.end(self._closed)

    def kept(self) -> Position:
        """The first row that retention has kept, in the latest closed range that was found. Raises LogBusy."""
        return self.order.first(self._looked())

    def partitions(self, start: Position, end: Position) -> Sequence[InputPartition]:
        """The slices between two positions. Raises HoleFound if retention dropped some of their rows."""
        if start == end:
            return []
        with connections.connect(self.conninfo) as reader:
            ranges, chosen = self._find(reader)
        return [
            Slice(self.table.query(f"({clause}) AND {chosen}", self.columns), segment, self.kind)
            for segment, clause in self.order.clauses(ranges, start, end, self.rows_per_slice)
        ]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The rows of one slice, read in a Spark worker. Raises SegmentDropped if retention dropped the segment."""
        return rows(self.conninfo, partition, self.columns)

    def _looked(self) -> ClosedRange:
        is_old = time.monotonic() - self._looked_at >= SECONDS_BETWEEN_SNAPSHOTS
        if self._closed is None or (is_old and not self._is_to_end):
            return self._look()
        return self._closed

    def _look(self) -> ClosedRange:
        with closed.quiet(self.conninfo) as (reader, _):
            self._closed, _ = self._find(reader)
        self._looked_at = time.monotonic()
        return self._closed

    def _find(self, reader: Connection) -> tuple[ClosedRange, str]:
        """The closed range with the chosen queues, and the condition for its rows. Raises OptionRefused."""
        return self.choice.applied(reader, closed.find(reader), self.table.columns.names)
