"""Reads an export without Spark."""

from pathlib import Path
from typing import Any

import pyarrow.parquet

Row = dict[str, Any]


def rows(folder: Path) -> list[Row]:
    """The rows of a table of an export; maps as dicts, and segments as numbers, by the names of their folders."""
    read: list[Row] = _table(folder).to_pylist(maps_as_pydicts="strict")
    return [row | {"segment": int(row["segment"])} if "segment" in row else row for row in read]


def types(folder: Path) -> dict[str, str]:
    """The columns of a table of an export, each with its type."""
    return {column.name: str(column.type) for column in _table(folder).schema}


def ordered(found: list[Row], *columns: str) -> list[Row]:
    """The rows by these columns."""
    return sorted(found, key=lambda row: tuple(str(row[column]) for column in columns))


def _table(folder: Path) -> Any:
    return pyarrow.parquet.read_table(folder, partitioning="hive")
