"""The statistics of a Parquet file for Delta Lake's log, by which readers skip files."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

# Readers gain nothing from longer bounds, which would make the log long.
MOST_CHARACTERS = 64
# Of other values, such as bytes, Delta Lake has no bounds.
BOUNDED = (int, float, str, datetime)


def of_file(path: Path) -> str:
    """The number of rows, and for each plain column the number of nulls, the lowest and the highest value, as JSON."""
    metadata = parquet.read_metadata(path)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    found: dict[str, Any] = {"numRecords": metadata.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for number in range(metadata.num_columns):
        name = metadata.schema.column(number).path
        statistics = [group.column(number).statistics for group in groups]
        # A list or a map has a path of several names.
        if "." in name or not all(one and one.has_null_count for one in statistics):
            continue
        found["nullCount"][name] = sum(one.null_count for one in statistics)
        held = [one for one, group in zip(statistics, groups, strict=True) if one.null_count < group.num_rows]
        _add_bounds(found, name, held)
    return json.dumps(found)


def _add_bounds(found: dict[str, Any], name: str, statistics: Sequence[Any]) -> None:
    """Adds the bounds of one column, of whose row groups each has a value."""
    if not statistics or not all(one.has_min_max for one in statistics):
        return
    lowest, highest = min(one.min for one in statistics), max(one.max for one in statistics)
    if isinstance(lowest, BOUNDED) and max(len(str(lowest)), len(str(highest))) <= MOST_CHARACTERS:
        found["minValues"][name], found["maxValues"][name] = _plain(lowest), _plain(highest)


def _plain(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
