"""Prints one line per second during a long export: the table that Spark writes, its rows, and the rows per second."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark import SparkContext, SparkStageInfo
from pyspark.sql import SparkSession

from analytics.closed import SLICE_ROWS

EVERY_SECONDS = 1.0
RUNNING = "RUNNING"
# The tables that jobs of Spark write. The other tables are written without a job.
TABLES = ("messages", "entries", "transactions")


@contextmanager
def shown(spark: SparkSession, say: Callable[[str], None]) -> Iterator[None]:
    """Calls `say` once a second within the block, while Spark writes one of the tables."""
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(spark, say, ended), name="progress", daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def _watch(spark: SparkSession, say: Callable[[str], None], ended: threading.Event) -> None:
    table, began, before = "", 0.0, 0
    while not ended.wait(EVERY_SECONDS):
        found = slices(spark)
        if found is None:
            continue
        now, (name, done, of) = time.monotonic(), found
        if name != table:
            table, began, before = name, now, done
        rate = (done - before) * SLICE_ROWS / max(now - began, EVERY_SECONDS)
        say(f"{name}: {done} of {of} slices, some {done * SLICE_ROWS:,} rows, {rate:,.0f} rows a second")


def slices(spark: SparkSession) -> tuple[str, int, int] | None:
    """The table that is being written, how many of its slices are done, and how many it has; None between tables."""
    for table in TABLES:
        for status, stages in jobs(spark.sparkContext, table):
            if status == RUNNING:
                return table, sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
    return None


def jobs(context: SparkContext, group: str | None) -> Iterator[tuple[str, list[SparkStageInfo]]]:
    """The status and the stages of each job of a group."""
    tracker = context.statusTracker()
    for number in tracker.getJobIdsForGroup(group):
        if job := tracker.getJobInfo(number):
            yield job.status, [stage for each in job.stageIds if (stage := tracker.getStageInfo(each)) is not None]
