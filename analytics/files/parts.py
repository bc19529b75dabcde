"""The files of an export: kept ones are linked into the new folder, and small ones are gathered into large ones."""

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from analytics import tables
from analytics.files import manifest
from analytics.files.manifest import Manifest, Part

COLUMNS = {
    "messages": tables.MESSAGES.columns,
    "entries": tables.ENTRIES.columns,
    "transactions": tables.ENDED.columns,
    "transactions_open": tables.UNDECIDED.columns,
    "checks": tables.CHECKS.columns,
    "timers": tables.TIMERS.columns,
}
# A table without a row has one file, so that its columns can be read.
EMPTY = Path("segment=0", "day=1970-01-01", "empty.parquet")
COMPACT_BYTES = 128 * 1024 * 1024


def keep(parts: Iterable[Part], earlier: Path, to: Path) -> None:
    """Links files of an earlier export into the folder of the new one; copies them where the disk has no links."""
    for part in parts:
        (to / part.path).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(earlier / part.path, to / part.path)
        except OSError:
            shutil.copy2(earlier / part.path, to / part.path)


def new(folder: Path, table: str, kept: Sequence[Part]) -> list[Part]:
    """The files of a table that were not kept; an empty one for a table without any."""
    names = {part.path for part in kept}
    found = [file for file in manifest.files(folder, table) if str(file.relative_to(folder)) not in names]
    if not found and not any(part.table == table for part in kept):
        found = [_empty(folder / table / EMPTY, COLUMNS[table])]
    return [manifest.part(folder, file) for file in found]


def compact_all(folder: Path, made: Manifest) -> None:
    """Gathers the small files of an export, and writes its manifest anew."""
    manifest.write(folder, manifest.with_parts(made, compact(folder, made.parts)))


def compact(folder: Path, parts: Iterable[Part]) -> list[Part]:
    """The parts after the small files of each day were gathered into files of 128 MiB at most."""
    done: list[Part] = []
    for _, of_day in groupby(sorted(parts, key=lambda part: part.path), key=lambda part: Path(part.path).parent):
        for gathered in _gathered(folder, list(of_day)):
            done += gathered if len(gathered) == 1 else [_merged(folder, gathered)]
    return done


def _gathered(folder: Path, parts: Sequence[Part]) -> Iterator[list[Part]]:
    gathered: list[Part] = []
    size = 0
    for part in parts:
        taken = (folder / part.path).stat().st_size
        if gathered and size + taken > COMPACT_BYTES:
            yield gathered
            gathered, size = [], 0
        gathered.append(part)
        size += taken
    if gathered:
        yield gathered


def _merged(folder: Path, parts: Sequence[Part]) -> Part:
    files = [folder / part.path for part in parts]
    merged = files[0].with_name(f"compact-{uuid.uuid4()}.parquet")
    schema = _schema(COLUMNS[parts[0].table])
    with parquet.ParquetWriter(merged, schema) as writer:
        for file in files:
            # A group of rows at a time: bodies may be large.
            with parquet.ParquetFile(file) as opened:
                for number in range(opened.num_row_groups):
                    writer.write_table(_with_all_columns(opened.read_row_group(number), schema))
    for file in files:
        file.unlink()
    return manifest.part(folder, merged)


def _with_all_columns(found: pyarrow.Table, schema: pyarrow.Schema) -> pyarrow.Table:
    """Columns that were added since the file was written are null."""
    columns = [
        found.column(field.name).cast(field.type)
        if field.name in found.column_names
        else pyarrow.nulls(found.num_rows, field.type)
        for field in schema
    ]
    return pyarrow.Table.from_arrays(columns, schema=schema)


def _empty(file: Path, columns: StructType) -> Path:
    file.parent.mkdir(parents=True)
    parquet.write_table(_schema(columns).empty_table(), file)
    return file


def _schema(columns: StructType) -> pyarrow.Schema:
    """The columns in a file: the segment is in the name of its folder."""
    return to_arrow_schema(StructType([column for column in columns if column.name != "segment"]), timezone="UTC")
