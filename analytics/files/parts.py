"""The files of an export: finds new files, merges small ones, and removes files that no manifest lists."""

import os
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby

import pyarrow
import pyarrow.parquet as parquet

from analytics import tables
from analytics.errors import ExportDamaged
from analytics.files import manifest
from analytics.files.hadoop import Place
from analytics.files.manifest import Part

COLUMNS = {
    "messages": tables.MESSAGES.columns,
    "entries": tables.ENTRIES.columns,
    "transactions": tables.ENDED.columns,
    "transactions_open": tables.UNDECIDED.columns,
    "checks": tables.CHECKS.columns,
    "timers": tables.TIMERS.columns,
}
# The path of the one file of a table without rows: the file has no rows, but shows readers the table's columns.
EMPTY = "segment=0/day=1970-01-01/empty"
COMPACT_BYTES = 128 * 1024 * 1024


def new(place: Place, table: str, known: Collection[str], kept: Sequence[Part]) -> list[Part]:
    """The files of a table that are not in `known`; an empty file for a table without files.

    Files of an older version lack the columns that were added later, and readers take the columns of the first file for
    all files. In this case an empty file with all columns becomes the first in the order of paths.
    """
    found = [path for path in manifest.files(place, table) if path not in known]
    of_table = [part for part in kept if part.table == table]
    schema = tables.arrow_of_files(COLUMNS[table])
    if (not found and not of_table) or any(part.schema < len(schema) for part in of_table):
        found.append(_empty(place, table, schema))
    # The checksum of 1 GB takes one processor a second.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(partial(manifest.part, place), found))


def columns(place: Place, part: Part, *names: str) -> pyarrow.Table:
    """Reads some columns of one file."""
    with place.opened(part.path) as opened:
        return parquet.read_table(opened, columns=list(names), partitioning=None)


def compact(place: Place, parts: Iterable[Part]) -> list[Part]:
    """Merges the small files of each day into files of at most 128 MiB.

    The small files stay until `sweep` removes them. Raises ExportDamaged if one of the small files was changed.
    """
    done: list[Part] = []
    for _, of_day in groupby(sorted(parts, key=lambda part: part.path), key=lambda part: part.path.rpartition("/")[0]):
        for gathered in _gathered(place, list(of_day)):
            done += gathered if len(gathered) == 1 else [_merged(place, gathered)]
    return done


def sweep(place: Place, listed: Iterable[Part]) -> None:
    """Removes every file of the tables that is not listed: files that were replaced, and files of a killed export."""
    keep = {part.path for part in listed}
    strange = [path for table in manifest.TABLES for path in place.files(table) if path not in keep]
    for path in dict.fromkeys(manifest.hidden(path) or path for path in strange):
        place.remove(path)


def _gathered(place: Place, parts: Sequence[Part]) -> Iterator[list[Part]]:
    gathered: list[Part] = []
    size = 0
    for part in parts:
        taken = place.size(part.path)
        if gathered and size + taken > COMPACT_BYTES:
            yield gathered
            gathered, size = [], 0
        gathered.append(part)
        size += taken
    if gathered:
        yield gathered


def _merged(place: Place, parts: Sequence[Part]) -> Part:
    _require_whole(place, parts)
    merged = f"{parts[0].path.rpartition('/')[0]}/compact-{uuid.uuid4()}.parquet"
    schema = tables.arrow_of_files(COLUMNS[parts[0].table])
    with place.created(merged) as created, parquet.ParquetWriter(created, schema) as writer:
        for part in parts:
            # Copies one row group at a time, because bodies may be large.
            with place.opened(part.path) as opened, parquet.ParquetFile(opened) as file:
                for number in range(file.num_row_groups):
                    writer.write_table(_with_all_columns(file.read_row_group(number), schema))
    return manifest.part(place, merged)


def _require_whole(place: Place, parts: Sequence[Part]) -> None:
    """Checks files before they are merged: the merged file gets a new checksum, which would hide damage."""
    for part in parts:
        if place.checksum(part.path) != part.checksum:
            raise ExportDamaged(
                f"{part.path} was changed since it was exported and is not gathered: `./mq export --verify DIR` names "
                "all that is damaged."
            )


def _with_all_columns(found: pyarrow.Table, schema: pyarrow.Schema) -> pyarrow.Table:
    """The rows with all columns. Columns that were added after the file was written are null."""
    columns = [
        found.column(field.name).cast(field.type)
        if field.name in found.column_names
        else pyarrow.nulls(found.num_rows, field.type)
        for field in schema
    ]
    return pyarrow.Table.from_arrays(columns, schema=schema)


def _empty(place: Place, table: str, schema: pyarrow.Schema) -> str:
    path = f"{table}/{EMPTY}-{uuid.uuid4()}.parquet"
    with place.created(path) as created:
        parquet.write_table(schema.empty_table(), created)
    return path
