"""The tasks of a read: each reads one slice by one query, and notices when retention has dropped the slice."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from analytics import connections
from analytics.connections import read
from analytics.errors import SegmentDropped
from analytics.readers import arrow
from analytics.rows import SegmentRows
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
    for batch in arrow.batches(conninfo, part.query, to_arrow_schema(columns, timezone="UTC")):
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
