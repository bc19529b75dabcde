"""Writes Arrow batches to Parquet files by segment and day, in a Python worker; no row becomes a Java object.

Spark may run a task twice. Files of a task have names that readers ignore until `finish` renames the files of the tasks
that counted.
"""

import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from analytics.files import place

# A task collects this many bytes before it writes a row group: readers can skip a whole group, and need memory for one
# group.
GROUP_BYTES = 16 * 1024 * 1024
UNFINISHED = ".unfinished"


class DayFiles:
    """The files of one task: one for each segment and day of the rows, by the time in the column `day_of`.

    A table without a `day_of` has one file, also without rows.
    """

    def __init__(self, folder: Path, schema: pyarrow.Schema, day_of: str | None) -> None:
        self._folder = folder
        self._schema = schema
        self._day_of = day_of
        self._files = {} if day_of else {"": GroupedFile(folder, schema)}

    def add(self, batch: pyarrow.RecordBatch) -> None:
        """Adds rows to their files. Rows are held in memory until they fill a row group."""
        for day, rows in _by_day(batch, self._day_of) if self._day_of else [("", batch)]:
            if day not in self._files:
                self._files[day] = GroupedFile(self._folder / day, self._schema)
            self._files[day].add(rows)

    def close(self) -> list[str]:
        """Writes the rows that are still in memory. Returns the paths of all files."""
        return [file.close() for file in self._files.values()]


class GroupedFile:
    """A Parquet file without the column of the segment; its row groups hold rows of similar size."""

    def __init__(self, folder: Path, schema: pyarrow.Schema) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"part-{uuid.uuid4()}.parquet{UNFINISHED}"
        self._schema = pyarrow.schema([column for column in schema if column.name != "segment"])
        self._file = place.created(self._path)
        self._writer = parquet.ParquetWriter(self._file, self._schema)
        self._held: list[pyarrow.RecordBatch] = []
        self._bytes = 0

    def add(self, batch: pyarrow.RecordBatch) -> None:
        """Adds rows to the file. Rows are held in memory until they fill a row group."""
        self._held.append(batch.select(self._schema.names))
        self._bytes += batch.nbytes
        if self._bytes >= GROUP_BYTES:
            self._write()

    def close(self) -> str:
        """Writes the rows that are still in memory. Returns the path of the file."""
        if self._held:
            self._write()
        self._writer.close()
        self._file.close()
        return str(self._path)

    def _write(self) -> None:
        self._writer.write_table(pyarrow.Table.from_batches(self._held))
        self._held, self._bytes = [], 0


def finish(folder: Path, written: Iterable[str]) -> None:
    """Renames these files of a table to names that readers see, and removes the files of failed or repeated tasks."""
    for path in written:
        Path(path).rename(path.removesuffix(UNFINISHED))
    for left in folder.rglob(f"*{UNFINISHED}"):
        left.unlink()


def _by_day(batch: pyarrow.RecordBatch, day_of: str) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
    """Splits a batch by segment and day; yields the folder of each segment and day, and its rows."""
    segments, days = batch.column("segment"), batch.column(day_of).cast(pyarrow.date32())
    if len(segments.unique()) == len(days.unique()) == 1:  # nearly always; the rows are not copied
        yield f"segment={segments[0]}/day={days[0]}", batch
        return
    for pair in (
        pyarrow.table({"segment": segments, "day": days}).group_by(["segment", "day"]).aggregate([]).to_pylist()
    ):
        is_of = compute.and_(compute.equal(segments, pair["segment"]), compute.equal(days, pair["day"]))
        yield f"segment={pair['segment']}/day={pair['day']}", batch.filter(is_of)
