"""Makes the tables of an export from the committed messages of a lake. The other tables have no rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.errors import FolderRefused
from analytics.files.lake import delta
from analytics.files.manifest import TABLES, Hole, Manifest, Reached
from analytics.files.parts import COLUMNS

if TYPE_CHECKING:
    from analytics.export.lake.table import LakeTable

# The tables of an export in which a committed message has a row.
OF_COMMITTED = ("messages", "entries")


def is_there(folder: Path) -> bool:
    """Whether a folder is itself a table of Delta Lake; the tables of an export lie in folders below it."""
    return (folder / delta.LOG).is_dir()


def cells(folder: Path) -> Sequence[tuple[str, Manifest]]:
    """The cells of a lake, and the page's sentence about their data. Raises FolderRefused without a commit."""
    of = _opened(folder)
    commits = [commit for commit in of.commits() if commit.batch]
    if of.last is None or not commits:
        raise FolderRefused(f"{folder} has no batch yet: `./mq lake --to DIR --once` adds one.")
    counts = of.messages()
    return [
        (
            cell,
            Manifest(
                database=f"of the cell {cell} (a lake: its committed messages alone)",
                taken_at=commits[-1].at.isoformat(),
                rows={**dict.fromkeys(TABLES, 0), **dict.fromkeys(OF_COMMITTED, counts.get(cell, 0))},
                ends=Reached(0, -1, -1, []),
                holes=[
                    Hole("entries", first, last)
                    for commit in commits
                    if commit.batch and cell in commit.batch.cells
                    for first, last in commit.batch.cells[cell].holes.values()
                ],
                unused=[],
                parts=[],
            ),
        )
        for cell in of.last.cells
    ]


def frame(spark: SparkSession, folder: Path, cell: str, name: str) -> DataFrame:
    """A table of an export, made of the messages of one cell of the lake, or of its only one, whose name is empty."""
    columns = COLUMNS[name]
    if name not in OF_COMMITTED:
        return spark.createDataFrame([], columns)
    files = [f"file://{path}" for path in _opened(folder).files()]
    rows = spark.read.option("basePath", f"file://{folder}").option("mergeSchema", True).parquet(*files)
    found = rows.where(F.col("cell") == cell) if cell else rows
    return found.select(
        *(
            (F.col(field.name) if field.name in found.columns else F.lit(None)).cast(field.dataType).alias(field.name)
            for field in columns
        )
    )


def _opened(folder: Path) -> "LakeTable":
    # Imported here, because the reports of an export do not need it, and a cluster's may lack it.
    from analytics.export.lake import table

    return table.opened(folder)
