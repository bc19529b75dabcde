"""The manifest of an export: every file with what it holds, and where the next export goes on."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as parquet

NAME = "export.json"
KIND = "mqbroker export"
# What changed with each: 1, whole exports; 2, increments.
FORMAT = 2
# The columns of analytics.tables: raised with each that is added. An older file has none, which readers take for null.
# 2: `due_at` of entries.
SCHEMA = 2
TABLES = ("messages", "entries", "transactions", "transactions_open", "checks", "timers")
READ_BYTES = 1024 * 1024


class Part(msgspec.Struct, frozen=True):
    """One file: `first` and `last` are its lowest and highest log offset, where the table has one."""

    path: str
    table: str
    segment: int | None
    first: int | None
    last: int | None
    rows: int
    checksum: str
    schema: int


class Ends(msgspec.Struct, frozen=True):
    """The last row of each append-only table that the export holds, -1 for none; of entries by topic id and queue."""

    segment: int
    log_offset: int
    operation_id: int
    queues: list[tuple[int, int, int]]


class Hole(msgspec.Struct, frozen=True):
    """What retention dropped before it was exported: offsets, both inclusive. Of entries, those of one queue."""

    table: str
    first: int
    last: int
    topic_id: int | None = None
    queue_id: int | None = None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """An export. `unused` are log offsets of writes that were rolled back: no message has one of them."""

    kind: str = KIND
    format: int = FORMAT
    database: str
    taken_at: str
    rows: dict[str, int]
    ends: Ends
    holes: list[Hole]
    unused: list[tuple[int, int]]
    parts: list[Part]


def read(folder: Path) -> Manifest | None:
    """The manifest of a folder; None where there is none that an increment can go on from."""
    try:
        text = (folder / NAME).read_bytes()
        found = msgspec.json.decode(text, type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None
    return found if (found.kind, found.format) == (KIND, FORMAT) else None


def write(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest: the last file of an export."""
    document = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    (folder / NAME).write_bytes(document + b"\n")


def files(folder: Path, table: str) -> Iterator[Path]:
    """The files of a table, in the order of their names."""
    yield from sorted((folder / table).rglob("*.parquet"))


def part(folder: Path, file: Path) -> Part:
    """What one file holds."""
    relative = file.relative_to(folder)
    found = parquet.read_metadata(file)
    first, last = _bounds(found)
    segment = next((int(name[8:]) for name in relative.parts if name.startswith("segment=")), None)
    rows = int(found.num_rows)
    return Part(str(relative), relative.parts[0], segment, first, last, rows, checksum(file), SCHEMA)


def checksum(file: Path) -> str:
    """The SHA-256 of a file's bytes."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def rows(parts: Sequence[Part]) -> dict[str, int]:
    """The rows of each table."""
    counted = dict.fromkeys(TABLES, 0)
    for one in parts:
        counted[one.table] += one.rows
    return counted


def _bounds(metadata: Any) -> tuple[int | None, int | None]:
    names = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    if "log_offset" not in names or not metadata.num_rows:
        return None, None
    column = names.index("log_offset")
    groups = [metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)]
    return min(group.min for group in groups), max(group.max for group in groups)


def with_parts(manifest: Manifest, parts: Sequence[Part]) -> Manifest:
    """The same export in other files."""
    return msgspec.structs.replace(manifest, parts=list(parts))
