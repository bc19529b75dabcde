"""Reads an export by DuckDB."""

from pathlib import Path

import duckdb


def counted(folder: Path, column: str) -> tuple[int, int]:
    """The rows of a table of an export, and those that have a value in the column."""
    found = duckdb.read_parquet(f"{folder}/**/*.parquet", hive_partitioning=True, union_by_name=True)
    [(rows, known)] = found.aggregate(f"count(*), count({column})").fetchall()
    return int(rows), int(known)
