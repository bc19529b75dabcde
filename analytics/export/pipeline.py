"""The pipeline of an export, in frames: slices of a closed range, their rows, the day of each, files.

Each step is a function from one frame to the next. Where Spark runs on this machine and the files lie here, ADBC's
workers do the steps behind the slices in one task, `slices → files`, so that no row becomes one of Java's: the frames
of single steps took 2.3 times the CPU. By JDBC, on a cluster and behind a URL each step is a frame.
"""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.files import days
from analytics.files.place import Local, Place
from analytics.readers.adbc import AdbcSource
from analytics.readers.source import Source
from analytics.tables import DAY, MESSAGES, Table


def of_slices(source: Source, table: Table, clauses: Sequence[str], to: Place, name: str) -> None:
    """Writes the rows of slices to the files of a table."""
    if not clauses:
        return
    # Shown in Spark's UI, and by `analytics.progress`.
    source.spark.sparkContext.setJobGroup(name, f"{name}: {len(clauses)} slices")
    if is_here(source) and isinstance(source, AdbcSource) and isinstance(to, Local):
        count(source.files(table, clauses, to.folder / name), to.folder / name)
        return
    write(dated(rows(source, table, clauses), table), to.url(name))


def of_moment(source: Source, table: Table, first: str, clause: str, to: Place, name: str) -> None:
    """Writes rows of a snapshot, which the statement `first` takes, while it lasts: in this process where it can be."""
    if is_here(source) and isinstance(source, AdbcSource) and isinstance(to, Local):
        source.save_now(table, first, clause, to.folder / name)
        return
    write(dated(source.whole(table, first, clause), table), to.url(name))


def is_here(source: Source) -> bool:
    """Whether Spark runs on this machine: its workers reach a folder of the command's."""
    return (source.spark.sparkContext.master or "").startswith("local")


def rows(source: Source, table: Table, clauses: Sequence[str]) -> DataFrame:
    """Slices → rows; of messages, which differ in size, in steps that fit into memory."""
    return source.weighed(table, clauses) if table is MESSAGES else source.slices(table, clauses)


def dated(frame: DataFrame, table: Table) -> DataFrame:
    """Rows → rows with the day that their files lie by; as they are, without a segment, where the table has no day."""
    return frame.drop("segment") if table.day_of is None else frame.withColumn(DAY, F.to_date(table.day_of))


def write(frame: DataFrame, to: str) -> None:
    """Rows → files, by segment and day where they have one."""
    folders = ["segment", DAY] if DAY in frame.columns else []
    frame.write.mode("append").partitionBy(*folders).parquet(to)


def count(files: DataFrame, folder: Path) -> None:
    """Files → the export's files: names those that ended tasks have written, and removes what other tasks left."""
    days.finish(folder, [row.path for row in files.collect()])
