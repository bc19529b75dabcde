"""Tables of Delta Lake in the folders of an export: a log beside the files, with one version per export."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.parquet as parquet
from pyspark.sql.types import StructType

from analytics import tables
from analytics.files.manifest import TABLES, Manifest, Part
from analytics.files.parts import COLUMNS

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

LOG = "_delta_log"
# Columns that the files lack, because folder names contain them.
PLACES = (pyarrow.field("segment", pyarrow.int32()), pyarrow.field(tables.DAY, pyarrow.date32()))


def folders() -> list[str]:
    """The folders of Delta Lake's logs within an export."""
    return [f"{table}/{LOG}" for table in TABLES]


def commit(new: Path, target: Path, made: Manifest, columns: Mapping[str, StructType] = COLUMNS) -> None:
    """Commits to each table the new files of the manifest, and removes files that the manifest no longer lists.

    A table that lacks one of the `columns` gets it.
    """
    for table in TABLES:
        _commit(new / table, [part for part in made.parts if part.table == table], _schema(columns[table]), made)


def _commit(folder: Path, parts: list[Part], schema: pyarrow.Schema, made: Manifest) -> None:
    from deltalake import CommitProperties, DeltaTable

    places = [column.name for column in PLACES if column.name in schema.names]
    properties = CommitProperties(custom_metadata={"mqbroker.taken_at": made.taken_at, "mqbroker.of": made.database})
    if not DeltaTable.is_deltatable(str(folder)):
        found = DeltaTable.create(str(folder), schema, partition_by=places, name=folder.name)
    else:
        found = _with_all_columns(DeltaTable(str(folder)), schema)
    known, wanted = _known(found), {_path(part) for part in parts}
    if known == wanted:
        return
    # Delta Lake's `overwrite` removes all earlier files; a version cannot remove only some.
    mode = "append" if known <= wanted else "overwrite"
    actions: list[AddAction | RemoveAction] = [
        _added(folder, part) for part in parts if mode == "overwrite" or _path(part) not in known
    ]
    found.create_write_transaction(actions, mode, found.schema(), partition_by=places, commit_properties=properties)


def _with_all_columns(found: "DeltaTable", schema: pyarrow.Schema) -> "DeltaTable":
    """The table after missing columns were added. In files that were written before, the new columns are null."""
    from deltalake import DeltaTable, Schema

    known = {field.name for field in found.schema().fields}
    added = [field for field in Schema.from_arrow(schema).fields if field.name not in known]
    if added:
        found.alter.add_columns(added)
    return DeltaTable(found.table_uri)


def _known(found: "DeltaTable") -> set[str]:
    """The paths of the files in the latest version."""
    return set(pyarrow.table(found.get_add_actions())["path"].to_pylist())


def _added(folder: Path, part: Part) -> "AddAction":
    from deltalake.transaction import AddAction

    path = _path(part)
    about = (folder / path).stat()
    return AddAction(
        path=path,
        size=about.st_size,
        partition_values=_places(path),
        modification_time=int(about.st_mtime * 1000),
        data_change=True,
        stats=statistics(folder / path),
    )


def _path(part: Part) -> str:
    return part.path.partition("/")[2]


def _places(path: str) -> dict[str, str | None]:
    """The segment and day that a path contains in the names of its folders."""
    return {name: value for name, equals, value in (word.partition("=") for word in path.split("/")[:-1]) if equals}


def _schema(columns: StructType) -> pyarrow.Schema:
    """The columns of the table's files, followed by the columns that only the folder names contain."""
    of_files = tables.arrow_of_files(columns)
    return pyarrow.schema([*of_files, *(PLACES if "segment" in columns.names else ())])


# Longer bounds do not help readers, and would make the log long.
MOST_CHARACTERS = 64
# Delta Lake has no bounds of other values, such as bytes.
BOUNDED = (int, float, str, datetime)


def statistics(path: Path) -> str:
    """The number of rows, and for each plain column the number of nulls, the lowest and the highest value, as JSON."""
    metadata = parquet.read_metadata(path)
    found: dict[str, Any] = {"numRecords": metadata.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for number in range(metadata.num_columns):
        name = metadata.schema.column(number).path
        groups = [metadata.row_group(group).column(number).statistics for group in range(metadata.num_row_groups)]
        # A list or a map has a path of several names.
        if "." in name or not all(groups):
            continue
        found["nullCount"][name] = sum(group.null_count for group in groups)
        values = [value for group in groups if group.has_min_max for value in (group.min, group.max)]
        if not values or not all(group.has_min_max or not group.num_values for group in groups):
            continue
        lowest, highest = min(values), max(values)
        if isinstance(lowest, BOUNDED) and max(len(str(lowest)), len(str(highest))) <= MOST_CHARACTERS:
            found["minValues"][name], found["maxValues"][name] = _plain(lowest), _plain(highest)
    return json.dumps(found)


def _plain(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
