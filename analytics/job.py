"""Exports the broker's tables to Parquet: reads closed ranges, transforms, writes, and counts what it wrote."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psycopg
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from analytics import connections, counts, folder, java, session, slices
from analytics.connections import Connection
from analytics.errors import CountsDiffer, ExportFailed
from analytics.moment import Moment, capture
from analytics.readers import address, driver
from analytics.readers.adbc import AdbcSource
from analytics.readers.jdbc import JdbcSource
from analytics.readers.source import Source
from analytics.tables import ENDED, ENTRIES, MESSAGES

# From so many messages on Java's better compiler saves more CPU than it takes.
BRIEF_MESSAGES = 1_000_000


@dataclass(frozen=True, slots=True)
class Counted:
    """The rows of a table that the files hold, and those that the broker counts in the same ranges."""

    table: str
    exported: int
    broker: int


Announce = Callable[[Counted], None]
Reader = Literal["jdbc", "source"]


@dataclass(frozen=True, slots=True)
class Wishes:
    """How an export reads: by `jdbc`, by `source`, or by JDBC where its driver is found (None).

    `jdbc_jar` is the driver's where one is named, `heaviest` the usual limit of a body in bytes.
    """

    reader: Reader | None
    jdbc_jar: str
    heaviest: int


def export(conninfo: str, target: Path, environ: Mapping[str, str], wishes: Wishes, announce: Announce) -> None:
    """Exports the database to the folder `target`, and announces each table when it is written and counted.

    `environ` leads to Java. Raises ExportFailed; the target is then as it was before.
    """
    with _failures_as_ours(), folder.workspace(target) as workspace:
        # Refusals first: the start of Spark takes seconds.
        jar = None if wishes.reader == "source" else driver.find(wishes.jdbc_jar)
        by_jdbc = wishes.reader == "jdbc" or jar is not None
        with connections.connect(conninfo) as connection:
            if by_jdbc:
                address.of(connection)
            brief = counts.estimate(connection) < BRIEF_MESSAGES
        runtime = java.find(java.candidates(environ))
        if by_jdbc and jar is None:
            jar = driver.fetch(runtime, workspace / "driver")
        with session.opened(runtime, jar, workspace / "spark", brief=brief) as spark:
            source = jdbc(spark, conninfo, wishes.heaviest) if jar else AdbcSource(spark, conninfo)
            write(source, conninfo, workspace / "export", announce)
        folder.put(workspace / "export", target, workspace)


def jdbc(spark: SparkSession, conninfo: str, heaviest: int) -> JdbcSource:
    """The database that libpq reaches, as JDBC reaches it. Raises SocketRefused."""
    with connections.connect(conninfo) as connection:
        return JdbcSource(spark, address.of(connection), heaviest)


def write(source: Source, conninfo: str, to: Path, announce: Announce) -> None:
    """Writes the export to the new folder `to`, up to the first table that differs from the broker's.

    Raises LogBusy, SegmentDropped or CountsDiffer.
    """
    with connections.connect(conninfo) as broker:
        # No transaction stays open while Spark writes: it would keep PostgreSQL from cleaning up the hot tables.
        broker.autocommit = True
        moment = capture(source, conninfo)
        rows = {}
        for counted in _tables(source, broker, moment, to):
            announce(counted)
            require_equal(counted)
            rows[counted.table] = counted.exported
    folder.sign(to, {"taken_at": moment.closed.taken_at.isoformat(), "rows": rows})


def require_equal(counted: Counted) -> None:
    """Raises CountsDiffer unless the files hold as many rows as the broker."""
    if counted.exported != counted.broker:
        raise CountsDiffer(
            f"{counted.table}: the files hold {counted.exported} rows and the broker {counted.broker}, although closed "
            "ranges do not change; the folder is as it was. Please report this."
        )


@contextmanager
def _failures_as_ours() -> Iterator[None]:
    """Raises ExportFailed, with one sentence, for failures of the database, of Spark and of the disk."""
    try:
        yield
    except psycopg.errors.UndefinedTable as problem:
        raise ExportFailed("The database has no tables of the broker: `./mq up` makes them.") from problem
    except psycopg.Error as problem:
        raise ExportFailed(f"The database did not answer as it should: {_first_line(problem)}.") from problem
    except (PySparkException, Py4JError) as problem:
        raise ExportFailed(f"Spark stopped: {_first_line(problem)}.") from problem
    except OSError as problem:
        raise ExportFailed(f"The files could not be written: {problem}.") from problem


def _first_line(problem: Exception) -> str:
    # py4j's own line stands above the reason, which is Java's.
    lines = [line for line in str(problem).splitlines() if line.strip() and not line.startswith("An error occurred")]
    return lines[0].strip(" :.") if lines else type(problem).__name__


def _tables(source: Source, broker: Connection, moment: Moment, to: Path) -> Iterator[Counted]:
    ranges = moment.closed
    for segment in ranges.segments:
        messages = slices.of_span("log_offset", segment.id, segment.messages)
        _save(source.weighed(MESSAGES, messages), to / "messages" / f"segment={segment.id}")
    yield Counted("messages", _rows(source, to / "messages"), counts.messages(broker, ranges))

    for segment in ranges.segments:
        entries = slices.of_queues(segment.id, segment.entries)
        _save(source.slices(ENTRIES, entries), to / "entries" / f"segment={segment.id}")
    yield Counted("entries", _rows(source, to / "entries"), counts.entries(broker, ranges))

    ended = [
        clause
        for segment in ranges.segments
        for clause in slices.of_span("operation_id", segment.id, segment.operations)
    ]
    _save(source.slices(ENDED, ended).unionAll(moment.undecided), to / "transactions")
    transactions_there = counts.ends(broker, ranges) + moment.counted.halves
    yield Counted("transactions", _rows(source, to / "transactions"), transactions_there)

    _save(moment.checks, to / "checks")
    yield Counted("checks", _rows(source, to / "checks"), moment.counted.checks)


def _save(frame: DataFrame, to: Path) -> None:
    frame.write.parquet(str(to))


def _rows(source: Source, of: Path) -> int:
    return source.spark.read.parquet(str(of)).count()
