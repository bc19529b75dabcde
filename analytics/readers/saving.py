"""Writes what a reader reads to the files of an export, by segment and day."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.files.place import Local, Place
from analytics.readers.adbc import AdbcSource
from analytics.readers.source import Source
from analytics.tables import MESSAGES, Table


def of_slices(source: Source, table: Table, clauses: Sequence[str], to: Place, name: str, day_of: str) -> None:
    """Writes rows to files: on this machine ADBC's workers do it themselves, all else is written by Spark."""
    is_here = (source.spark.sparkContext.master or "").startswith("local")
    if is_here and isinstance(source, AdbcSource) and isinstance(to, Local):
        source.save(table, clauses, to.folder / name, day_of)
        return
    frame = source.weighed(table, clauses) if table is MESSAGES else source.slices(table, clauses)
    of_frame(frame, to.url(name), day_of)


def of_frame(frame: DataFrame, to: str, day_of: str) -> None:
    """Writes a frame to files by segment and day."""
    by_day = frame.withColumn("day", F.to_date(day_of))
    by_day.write.mode("append").partitionBy("segment", "day").parquet(to)
