"""Reads one cell for the lake: the messages that became visible after the offsets of the last batch."""

from collections.abc import Iterator
from datetime import datetime

import pyarrow
from pyspark.sql.streaming.datasource import ReadMaxRows

from analytics import closed, connections
from analytics.errors import CellDiffers, FolderRefused, LogBehind
from analytics.export.lake.table import READ, SCHEMA, Reach
from analytics.readers.datasource.chosen import Choice
from analytics.readers.datasource.options import EARLIEST, Bound
from analytics.readers.datasource.orders import Position
from analytics.readers.datasource.streams import BrokerStream
from store.db.statements import Statement

OWN_SINCE = Statement(__file__, "own_since", maybe=datetime)
# The most offsets of one cell in a batch. A row group of the table has fewer rows, so this number does not affect
# memory.
MAX_OFFSETS = 200_000


class Feed:
    """The committed messages of one cell. The stream of the data source `mqbroker` reads them, without Spark."""

    def __init__(self, cell_id: int, cell: str, conninfo: str) -> None:
        self._cell_id = cell_id
        self.cell = cell
        self._conninfo = conninfo
        self._stream = BrokerStream(
            conninfo, "committed", READ.columns, Choice(), Bound(EARLIEST), closed.SLICE_ROWS, MAX_OFFSETS
        )

    def reach(self, last: Reach | None, *, anew: bool = True) -> Reach:
        """The offsets that the next batch reads: from the end of the last batch, or from the cell's first entry, at
        most MAX_OFFSETS.

        The batch ends at the last row that is final now; without `anew`, at the last row that was final at the previous
        call.

        Raises FolderRefused if the log ends before the end of the last batch, CellDiffers if the last batch read
        another cell of this name, LogBusy, and psycopg's errors.
        """
        if last and last.cell_id != self._cell_id:
            raise CellDiffers(f"the lake has read the cell {last.cell_id}, and this one is {self._cell_id}")
        if anew:
            self._stream.prepareForTriggerAvailableNow()
        start = last.end if last else self._first()
        try:
            end = self._stream.latestOffset(start, ReadMaxRows(MAX_OFFSETS))
        except LogBehind as behind:
            raise FolderRefused(
                f"The lake has read further than the log of {self.cell} reaches, as after the restore of a back-up: "
                "give a new folder."
            ) from behind
        kept = self._stream.kept()
        holes = {
            queue: (start.get(queue, 0), first - 1)
            for queue, first in kept.items()
            if last and start.get(queue, 0) < first
        }
        begun = {queue: kept[queue] if queue in holes else start.get(queue, 0) for queue in end}
        end = {queue: max(offset, begun[queue]) for queue, offset in end.items()}
        return Reach(self._cell_id, {queue: at for queue, at in begun.items() if at < end[queue]}, end, holes)

    def rows(self, start: Position, end: Position) -> Iterator[pyarrow.RecordBatch]:
        """The rows between two positions. A queue that `start` does not name is not read.

        Raises HoleFound or SegmentDropped if retention drops rows meanwhile.
        """
        for part in self._stream.partitions(start, {queue: end[queue] for queue in start}):
            yield from self._stream.read(part)

    def kept(self) -> Position:
        """The first offset of each queue that retention has kept."""
        return self._stream.kept()

    def _first(self) -> Position:
        with connections.connect(self._conninfo) as reader:
            [since] = connections.read(reader, OWN_SINCE)
        self._stream.starting = Bound(EARLIEST, since=since)
        return self._stream.initialOffset()


def marked(rows: Iterator[pyarrow.RecordBatch], cell: str, number: int) -> Iterator[pyarrow.RecordBatch]:
    """The rows in the form of the table, with the name of the cell and the number of the batch."""
    for read in rows:
        own = [pyarrow.repeat(pyarrow.scalar(value), read.num_rows) for value in (cell, number)]
        yield pyarrow.RecordBatch.from_arrays([*own, *read.columns], schema=SCHEMA)
