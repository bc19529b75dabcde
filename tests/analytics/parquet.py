"""Reads an export without Spark."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet

Row = dict[str, Any]


def rows(folder: Path) -> list[Row]:
    """The rows of a table of an export; maps as dicts, and segments as numbers, by the names of their folders."""
    read: list[Row] = _table(folder).to_pylist(maps_as_pydicts="strict")
    numbered = [row | {"segment": int(row["segment"])} if "segment" in row else row for row in read]
    return [{column: value for column, value in row.items() if column != "day"} for row in numbered]


def transactions(export: Path) -> list[Row]:
    """All transactions of an export: those that were ended, and those that were not."""
    return [*rows(export / "transactions"), *rows(export / "transactions_open")]


def sign(folder: Path, **facts: object) -> None:
    """Makes a folder an earlier export, as the first version of the export did."""
    (folder / "export.json").write_text(json.dumps({"kind": "mqbroker export", **facts}), encoding="utf-8")


def types(folder: Path) -> dict[str, str]:
    """The columns of a table of an export, each with its type."""
    return {column.name: str(column.type) for column in _table(folder).schema}


def ordered(found: list[Row], *columns: str) -> list[Row]:
    """The rows by these columns."""
    return sorted(found, key=lambda row: tuple(str(row[column]) for column in columns))


def _table(folder: Path) -> Any:
    return pyarrow.parquet.read_table(folder, partitioning="hive")
