"""Writes what a reader reads to the files of an export, by segment and day."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.files.place import Local, Place
from analytics.readers.adbc import AdbcSource
from analytics.readers.source import Source
from analytics.tables import MESSAGES, Table


def of_slices(source: Source, table: Table, clauses: Sequence[str], to: Place, name: str) -> None:
    """Writes rows to files: on this machine ADBC's workers do it themselves, all else is written by Spark."""
    if not clauses:
        return
    if _is_here(source) and isinstance(source, AdbcSource) and isinstance(to, Local):
        source.save(table, clauses, to.folder / name)
        return
    frame = source.weighed(table, clauses) if table is MESSAGES else source.slices(table, clauses)
    _of_frame(frame, table, to.url(name))


def of_moment(source: Source, table: Table, first: str, clause: str, to: Place, name: str) -> None:
    """Writes rows of a snapshot, which the statement `first` takes, while it lasts: in this process where it can be."""
    if _is_here(source) and isinstance(source, AdbcSource) and isinstance(to, Local):
        source.save_now(table, first, clause, to.folder / name)
        return
    _of_frame(source.whole(table, first, clause), table, to.url(name))


def _is_here(source: Source) -> bool:
    return (source.spark.sparkContext.master or "").startswith("local")


def _of_frame(frame: DataFrame, table: Table, to: str) -> None:
    """Writes a frame to files by segment and day; without a segment where the table has no day."""
    if table.day_of is None:
        frame.drop("segment").write.mode("append").parquet(to)
        return
    by_day = frame.withColumn("day", F.to_date(table.day_of))
    by_day.write.mode("append").partitionBy("segment", "day").parquet(to)
