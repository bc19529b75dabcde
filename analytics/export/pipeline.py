"""The pipeline of an export: slices of a closed range → rows → rows with their day → files.

Each step is a function from one frame to the next. If Spark runs on this machine and the files lie here too, one task
of ADBC's Python workers does all steps, `slices → files`, so that no row becomes a Java object: separate frames took
2.3 times the CPU. With JDBC, on a cluster and behind a URL each step is a frame.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics import closed
from analytics.closed import ClosedRange
from analytics.files import days
from analytics.files.hadoop import Place
from analytics.files.place import Local
from analytics.readers import counts
from analytics.readers.adbc import AdbcSource
from analytics.readers.opening import Source
from analytics.rows import Undecided
from analytics.tables import CHECKS, DAY, TIMERS, UNDECIDED, Table


def of_slices(source: Source, table: Table, clauses: Sequence[str], to: Place, name: str) -> None:
    """Reads the rows of the slices and writes them to the files of a table."""
    if not clauses:
        return
    # Shown in Spark's UI, and read by `analytics.export.progress`.
    source.spark.sparkContext.setJobGroup(name, f"{name}: {len(clauses)} slices")
    if is_here(source) and isinstance(source, AdbcSource) and isinstance(to, Local):
        # Renames the files of tasks that counted, and removes the files of other tasks.
        days.finish(to.folder / name, source.files(table, clauses, to.folder / name))
        return
    write(dated(source.slices(table, clauses), table), to.url(name))


def of_moment(source: Source, table: Table, first: str, clause: str, to: Place, name: str) -> None:
    """Writes the rows of a snapshot, which the statement `first` enters: where possible without a task of Spark."""
    if is_here(source) and isinstance(source, AdbcSource) and isinstance(to, Local):
        source.save_now(table, first, clause, to.folder / name)
        return
    write(dated(source.whole(table, first, clause), table), to.url(name))


def is_here(source: Source) -> bool:
    """Whether Spark runs on this machine, so that its workers can write to a folder of this machine."""
    return (source.spark.sparkContext.master or "").startswith("local")


def dated(frame: DataFrame, table: Table) -> DataFrame:
    """Adds to each row the day of its file's folder. For a table without days only removes the column `segment`."""
    return frame.drop("segment") if table.day_of is None else frame.withColumn(DAY, F.to_date(table.day_of))


def write(frame: DataFrame, to: str) -> None:
    """Writes rows to files. Rows with a segment and a day go to a folder for each segment and day."""
    folders = ["segment", DAY] if DAY in frame.columns else []
    frame.write.mode("append").partitionBy(*folders).parquet(to)


@dataclass(frozen=True, slots=True)
class Moment:
    """A closed range, and how many rows the other tables had in the same snapshot. The snapshot has ended."""

    closed: ClosedRange
    counted: Undecided


def capture(source: Source, conninfo: str, checks_from: int, to: Place) -> Moment:
    """Captures the present moment and writes the tables of its snapshot to the place `to`. Raises LogBusy.

    Checks are written from the segment `checks_from` on.
    """
    with closed.quiet(conninfo) as (reader, first):
        of_moment(source, UNDECIDED, first, "true", to, "transactions_open")
        of_moment(source, CHECKS, first, f"segment_id >= {checks_from:d}", to, "checks")
        of_moment(source, TIMERS, first, "true", to, "timers")
        return Moment(closed.find(reader), counts.undecided(reader, checks_from))
