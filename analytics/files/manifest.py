"""The manifest of an export: a list of all files with their content, and where the next export continues."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow.parquet as parquet

from analytics.errors import FolderRefused
from analytics.files.hadoop import Place

NAME = "export.json"
KIND = "mqbroker export"
# Format 1: complete exports only. Format 2: also increments.
FORMAT = 2
TABLES = ("messages", "entries", "transactions", "transactions_open", "checks", "timers")


class Head(msgspec.Struct, frozen=True):
    """The fields that every manifest has. The first manifests had no format."""

    kind: str = ""
    format: int = 1


class Part(msgspec.Struct, frozen=True):
    """One file of an export. `first` and `last` are its lowest and highest log offset, if the table has log offsets.

    `schema` is the number of columns. Columns are only ever added, so the number identifies the version of the table.
    """

    path: str
    table: str
    segment: int | None
    first: int | None
    last: int | None
    rows: int
    checksum: str
    schema: int


class Reached(msgspec.Struct, frozen=True):
    """The last row of each append-only table that the export holds, -1 for none; for entries by topic id and queue."""

    segment: int
    log_offset: int
    operation_id: int
    queues: list[tuple[int, int, int]]


class Hole(msgspec.Struct, frozen=True):
    """Rows that retention dropped before they were exported, from the first to the last offset, both inclusive.

    For entries, the offsets of one queue; for transactions, the ids of operations.
    """

    table: str
    first: int
    last: int
    topic_id: int | None = None
    queue_id: int | None = None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `export.json`. `unused` are log offsets of writes that were rolled back: no message has them."""

    kind: str = KIND
    format: int = FORMAT
    database: str
    taken_at: str
    rows: dict[str, int]
    ends: Reached
    holes: list[Hole]
    unused: list[tuple[int, int]]
    parts: list[Part]


def read(place: Place) -> Manifest | None:
    """The manifest of an export; None if there is none that an increment can continue.

    Raises FolderRefused for a manifest in an unknown format: replacing it would lose rows that retention has since
    dropped.
    """
    try:
        content = place.read(NAME)
        head = msgspec.json.decode(content, type=Head)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None
    if head.kind != KIND or head.format < FORMAT:
        return None
    try:
        if head.format == FORMAT:
            return msgspec.json.decode(content, type=Manifest)
        reason = f"it has format {head.format}, of a newer version, and this one knows {FORMAT}"
    except msgspec.DecodeError as problem:
        reason = str(problem)
    raise FolderRefused(f"{NAME} in {place} is not understood ({reason}): give a new folder.")


def is_of(content: bytes, kind: str) -> bool:
    """Whether a manifest, or another file that marks a folder, is of this `kind`, in any version of the format."""
    try:
        document = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return False
    return isinstance(document, dict) and document.get("kind") == kind


def write(place: Place, manifest: Manifest) -> None:
    """Writes the manifest: the last file of an export."""
    place.write(NAME, encoded(manifest))


def encoded(manifest: Manifest) -> bytes:
    """The bytes of the file `export.json`."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def files(place: Place, table: str) -> list[str]:
    """The files of a table, sorted by name, without files that Spark has not finished."""
    return [path for path in place.files(table) if path.endswith(".parquet") and not hidden(path)]


def hidden(path: str) -> str | None:
    """The part of a path that makes readers ignore it, such as Spark's folder of unfinished files; or None."""
    names = path.split("/")
    for number, name in enumerate(names, 1):
        if name.startswith(("_", ".")):
            return "/".join(names[:number])
    return None


def part(place: Place, path: str) -> Part:
    """The entry of one file in the manifest, read from the file."""
    names = path.split("/")
    segment = next((int(name[8:]) for name in names if name.startswith("segment=")), None)
    with place.opened(path) as opened:
        found = parquet.read_metadata(opened)
    first, last = bounds(found)
    return Part(path, names[0], segment, first, last, int(found.num_rows), place.checksum(path), columns(found))


def rows(parts: Sequence[Part]) -> dict[str, int]:
    """The number of rows of each table."""
    counted = dict.fromkeys(TABLES, 0)
    for one in parts:
        counted[one.table] += one.rows
    return counted


def columns(metadata: Any) -> int:
    """The number of a file's columns; a map or a list counts as one column."""
    return len(metadata.schema.to_arrow_schema())


def bounds(metadata: Any) -> tuple[int | None, int | None]:
    """The lowest and the highest log offset in a file; None if it has no log offsets."""
    names = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    if "log_offset" not in names or not metadata.num_rows:
        return None, None
    column = names.index("log_offset")
    groups = [metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)]
    return min(group.min for group in groups), max(group.max for group in groups)


def with_parts(manifest: Manifest, parts: Sequence[Part]) -> Manifest:
    """The manifest of the same export with other files."""
    return msgspec.structs.replace(manifest, parts=list(parts))
