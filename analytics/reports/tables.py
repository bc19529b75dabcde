"""The tables of an export as frames, and functions that several reports use."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.errors import ExportDamaged, FolderRefused
from analytics.files import listed, manifest
from analytics.files.hadoop import Place
from analytics.files.manifest import Manifest
from analytics.files.parts import COLUMNS
from analytics.files.place import Local
from analytics.reports import lake
from analytics.tables import COPIED

HOUR_SECONDS = 3600
PERCENTILES = (50, 95, 99)
# The rank of a percentile is wrong by at most the size of the group divided by this number.
ACCURACY = 10_000
# Spark's option for reading paths literally, not as patterns: Hadoop cannot escape a pattern in a path with a colon.
AS_THEY_ARE = {"__globPaths__": "false"}


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one export as frames with the columns of `analytics.tables`, and the moment of the export.

    `transactions` holds ended and undecided transactions.
    """

    taken_at: datetime
    messages: DataFrame
    entries: DataFrame
    transactions: DataFrame
    checks: DataFrame
    timers: DataFrame


class Export(NamedTuple):
    """An export to make reports of. Its name is the cell's, or empty for an installation with one database."""

    cell: str
    place: Place
    made: Manifest


def exports(place: Place) -> list[Export]:
    """The export in a folder, or the exports of all cells, the control's first. A lake counts as an export.

    Raises FolderRefused if there is no export or a cell has none, ExportDamaged if a file is missing.
    """
    if isinstance(place, Local) and lake.is_there(place.folder):
        found = lake.cells(place.folder)
        return [Export(cell if len(found) > 1 else "", place, made) for cell, made in found]
    return [Export(cell, there, require(there)) for cell, there in listed.each(place).items()]


def taken_at(exports: Sequence[Export]) -> str:
    """The earliest moment among the exports."""
    return min((each.made.taken_at for each in exports), key=datetime.fromisoformat)


def require(place: Place) -> Manifest:
    """The manifest of an export whose files all exist.

    Raises FolderRefused if there is no export, ExportDamaged if a file is missing.
    """
    made = manifest.read(place)
    if made is None:
        raise FolderRefused(f"{place} holds no export with a list of its files: `./mq export --to DIR` makes one.")
    there = set(place.files())
    missing = [part.path for part in made.parts if part.path not in there]
    if missing:
        raise ExportDamaged(
            f"{place} lacks {missing[0]} and {len(missing) - 1} other files of its export: "
            "`./mq export --verify DIR` names all, a new export to an empty folder writes them."
        )
    return made


def read(spark: SparkSession, export: Export) -> Tables:
    """The files that the manifest of an export lists, as frames. Columns that older files lack are null.

    Entries, transactions and checks that the split of a cell copied are left out: the export of the other cell has
    them. Copied messages are kept, because entries of their own cell may refer to them.
    """
    cell, place, made = export

    def table(name: str) -> DataFrame:
        if isinstance(place, Local) and lake.is_there(place.folder):
            return lake.frame(spark, place.folder, cell, name)
        files = [place.url(part.path) for part in made.parts if part.table == name]
        frame = spark.read.schema(COLUMNS[name]).options(basePath=place.url(name), **AS_THEY_ARE).parquet(*files)
        return frame.select(COLUMNS[name].names)

    return Tables(
        taken_at=datetime.fromisoformat(made.taken_at),
        messages=table("messages"),
        entries=own(table("entries")),
        transactions=own(table("transactions").unionByName(table("transactions_open"))),
        checks=own(table("checks")),
        timers=table("timers"),
    )


def own(rows: DataFrame) -> DataFrame:
    """The rows without the copies that the split of a cell made. Older files do not say which rows are copies."""
    return rows.where(~F.coalesce(COPIED, F.lit(False)))


def once(messages: DataFrame, *columns: str) -> DataFrame:
    """Each message once: its id, these columns as it was first stored, and the lowest of its log offsets.

    Rows with equal message ids are one message. `copy_of` alone is not enough to find such rows: if retention dropped
    the first row of a message before its copy was exported, an incremental export may hold the first row and the copy,
    and the copy has no `copy_of`.
    """
    # Structs are compared by their first field, and no two rows have the same log offset.
    first = messages.groupBy("message_id").agg(F.min(F.struct("log_offset", *columns)).alias("first"))
    return first.select("message_id", "first.*")


def with_message(entries: DataFrame, messages: DataFrame) -> DataFrame:
    """The entries with `message`, equal for all entries of one message, and `stored_topic`, its first topic.

    An entry whose message is not in the export counts as a separate message.
    """
    stored = messages.select("log_offset", "message_id", F.col("topic").alias("stored_topic"))
    message = F.coalesce("message_id", F.col("log_offset").cast("string")).alias("message")
    return entries.join(stored, "log_offset", "left").select(*entries.columns, "stored_topic", message)


def hour(time: str) -> Column:
    """The start of the hour of a time, in UTC, whatever the session's time zone."""
    seconds = F.unix_timestamp(time)
    return F.timestamp_seconds(seconds - seconds % HOUR_SECONDS).alias("hour")


def percentiles(value: str, unit: str) -> list[Column]:
    """Aggregates for a group: p50, p95, p99 and the maximum, in `unit`; null without values.

    A percentile is a value by nearest rank, exact for groups of up to ACCURACY values: `percentile` would keep each
    distinct value of a group in memory.
    """
    found = [F.percentile_approx(value, each / 100, ACCURACY).alias(f"p{each}_{unit}") for each in PERCENTILES]
    return [*found, F.max(value).alias(f"max_{unit}")]
