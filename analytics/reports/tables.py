"""The tables of an export as frames, and what every report of them needs: each message once, hours in UTC."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.errors import ExportDamaged, FolderRefused
from analytics.files import listed, manifest
from analytics.files.manifest import Manifest
from analytics.files.parts import COLUMNS
from analytics.files.place import Place

HOUR_SECONDS = 3600
# Spark's own word for paths that are no patterns: beside a colon, Hadoop matches no pattern, escaped or not.
AS_THEY_ARE = {"__globPaths__": "false"}


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one export, with the columns of `analytics.tables`, and the moment of which they are.

    `transactions` holds ended and undecided ones.
    """

    taken_at: datetime
    messages: DataFrame
    entries: DataFrame
    transactions: DataFrame
    checks: DataFrame
    timers: DataFrame


class Export(NamedTuple):
    """An export whose reports are made: that of a cell, or with no name for one, of the only database."""

    cell: str
    place: Place
    made: Manifest


def exports(place: Place) -> list[Export]:
    """The export in a folder, or those of all cells, the control's first.

    Raises FolderRefused where there is none, or none of one of the cells; ExportDamaged where a file is missing.
    """
    return [Export(cell, there, require(there)) for cell, there in listed.each(place).items()]


def taken_at(exports: Sequence[Export]) -> str:
    """The earliest moment of the exports."""
    return min((each.made.taken_at for each in exports), key=datetime.fromisoformat)


def require(place: Place) -> Manifest:
    """The list of an export's files, all of which are there.

    Raises FolderRefused where there is no export, ExportDamaged where a file is missing.
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
    """The files in the list of an export, and no other; columns that a file of an older version lacks are null."""
    _, place, made = export

    def table(name: str) -> DataFrame:
        files = [place.url(part.path) for part in made.parts if part.table == name]
        frame = spark.read.schema(COLUMNS[name]).options(basePath=place.url(name), **AS_THEY_ARE).parquet(*files)
        return frame.select(COLUMNS[name].names)

    return Tables(
        taken_at=datetime.fromisoformat(made.taken_at),
        messages=table("messages"),
        entries=table("entries"),
        transactions=table("transactions").unionByName(table("transactions_open")),
        checks=table("checks"),
        timers=table("timers"),
    )


def once(messages: DataFrame, *columns: str) -> DataFrame:
    """Each message once, as it was stored first: its id, these columns, and the lowest of its log offsets.

    Message ids say which rows are one message. `copy_of` alone does not: an export that goes on from an earlier one
    may hold a message whose first row retention dropped before the copy was exported, and that copy has no `copy_of`.
    """
    # Structs are compared by their first field, and no two rows have one log offset.
    first = messages.groupBy("message_id").agg(F.min(F.struct("log_offset", *columns)).alias("first"))
    return first.select("message_id", "first.*")


def with_message(entries: DataFrame, messages: DataFrame) -> DataFrame:
    """Entries with `message`, which is equal for all entries of one message, and `stored_topic`, where it was sent.

    An entry whose message the export does not hold is a message of its own.
    """
    stored = messages.select("log_offset", "message_id", F.col("topic").alias("stored_topic"))
    message = F.coalesce("message_id", F.col("log_offset").cast("string")).alias("message")
    return entries.join(stored, "log_offset", "left").select(*entries.columns, "stored_topic", message)


def hour(time: str) -> Column:
    """The begin of the hour of a time, in UTC whatever the time zone of the session."""
    seconds = F.unix_timestamp(time)
    return F.timestamp_seconds(seconds - seconds % HOUR_SECONDS).alias("hour")
