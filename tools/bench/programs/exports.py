"""Exports the broker's tables to Parquet in one way and times each table: without Spark (the limit), or with a reader
of the export.

The limit is what Arrow can do without Spark: ADBC, properties as maps, and pyarrow's writer with its defaults, in one
process and one session, with the same statements.
"""

import os
import sys
import time
from pathlib import Path

import django
import msgspec
import pyarrow
import pyarrow.parquet as parquet
from django.conf import settings
from pyspark.sql import SparkSession

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
django.setup()

from analytics import connections, java, session  # noqa: E402  # imported after Django is set up
from analytics.export import job  # noqa: E402  # after Django is set up
from analytics.files.place import Local  # noqa: E402
from analytics.management import classes  # noqa: E402
from analytics.readers import address, arrow, counts, driver, opening  # noqa: E402
from analytics.readers.adbc import AdbcSource  # noqa: E402
from analytics.readers.opening import Source  # noqa: E402
from analytics.tables import ENDED, ENTRIES, MESSAGES, UNDECIDED  # noqa: E402

TABLES = {"messages": [MESSAGES], "entries": [ENTRIES], "transactions": [ENDED, UNDECIDED]}


class Clock:
    """A stop watch: measures the seconds since its creation, or since the last call."""

    def __init__(self) -> None:
        self._asked = time.perf_counter()

    def seconds(self) -> float:
        """The seconds since the last call."""
        before, self._asked = self._asked, time.perf_counter()
        return self._asked - before


def limit(conninfo: str, to: Path) -> dict[str, float]:
    """Seconds for each table, without Spark."""
    clock, found = Clock(), {}
    for name, tables in TABLES.items():
        for number, table in enumerate(tables):
            schema = table.arrow
            with parquet.ParquetWriter(to / f"{name}-{number}.parquet", schema) as writer:
                for batch in arrow.batches(conninfo, table.query("true"), schema):
                    writer.write_table(pyarrow.Table.from_batches([batch]))
        found[name] = clock.seconds()
    return found


def exported(conninfo: str, to: Path, reader: str) -> dict[str, float]:
    """Seconds for the start of the session, for each table, and for the list of the files."""
    clock, found = Clock(), {}
    runtime = java.find(java.candidates(os.environ))
    # The driver is found before the clock starts, as in an export.
    jar = None
    if reader == "jdbc":
        jar = driver.find(settings.JDBC_JAR) or driver.fetch(runtime, to / "driver")
    clock.seconds()
    brief = reader == "source" or is_brief(conninfo)
    with classes.kept(runtime), session.opened(runtime, jar, to / "spark", brief=brief) as spark:
        source = way(spark, conninfo, reader)
        found["session"] = clock.seconds()

        def announce(counted: job.Counted) -> None:
            found[counted.table] = clock.seconds()

        job.write(source, conninfo, Local(to / "export"), announce)
        found["list"] = clock.seconds()
    return found


def is_brief(conninfo: str) -> bool:
    """Whether an export of this database uses Java's settings for little work."""
    with connections.connect(conninfo) as connection:
        return counts.estimate(connection) < opening.BRIEF_MESSAGES


def way(spark: SparkSession, conninfo: str, reader: str) -> Source:
    """The source for the reader with this name."""
    return (
        opening.jdbc(spark, conninfo, settings.MAX_MESSAGE_BYTES) if reader == "jdbc" else AdbcSource(spark, conninfo)
    )


def main(side: str, folder: str) -> None:
    """Prints the measured seconds as JSON."""
    conninfo = address.conninfo(settings.DATABASES["default"])
    to = Path(folder)
    seconds = limit(conninfo, to) if side == "limit" else exported(conninfo, to, side)
    sys.stdout.write(msgspec.json.encode(seconds).decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
