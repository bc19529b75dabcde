"""Exports the broker's tables to Parquet: reads closed ranges, transforms, writes, and counts what it wrote."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy
from pyspark.sql import SparkSession

from analytics import connections, java, session
from analytics.closed import ClosedRange, ClosedSegment
from analytics.connections import Connection
from analytics.errors import CountsDiffer, ExportDamaged, FolderRefused
from analytics.files import folder, increments, lineage, manifest, noted, parts, remote
from analytics.files import verify as check
from analytics.files.hadoop import Hadoop
from analytics.files.manifest import Manifest, Part, Reached
from analytics.files.place import Local, Place
from analytics.readers import address, counts, driver, saving, slices
from analytics.readers.adbc import AdbcSource
from analytics.readers.failures import failures_as_ours
from analytics.readers.jdbc import JdbcSource
from analytics.readers.moment import Moment, capture
from analytics.readers.source import Source
from analytics.session import Cluster
from analytics.submit import is_submitted
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
# A folder of this machine, or the URL of one.
Target = Path | str


@dataclass(frozen=True, slots=True)
class Wishes:
    """How an export reads: by `source`, which is ADBC, or by `jdbc`.

    `jdbc_jar` is JDBC's driver where one is named, `heaviest` the usual limit of a body in bytes. With
    `compact` small files are gathered. The broker notes the export under the name `noted_as`.
    """

    reader: Reader
    jdbc_jar: str
    heaviest: int
    noted_as: str
    compact: bool = False
    cluster: Cluster = session.HERE


def export(conninfo: str, target: Target, environ: Mapping[str, str], wishes: Wishes, announce: Announce) -> str | None:
    """Exports the database to a folder, or to one behind a URL; announces each table when it is written and counted.

    `environ` leads to Java. Returns the reason where the broker could not note the export. Raises ExportFailed; the
    target is then as it was before.
    """
    with failures_as_ours():
        if isinstance(target, Path):
            made = _export_here(conninfo, target, environ, wishes, announce)
        else:
            made = _export_there(conninfo, target, environ, wishes, announce)
        # Only now: retention drops what an export holds.
        return noted.note(conninfo, wishes.noted_as, made)


def _export_here(
    conninfo: str, target: Path, environ: Mapping[str, str], wishes: Wishes, announce: Announce
) -> Manifest:
    with folder.workspace(target) as workspace:
        to = Local(workspace / "export")
        # By ADBC the workers write, and Java only starts tasks.
        idle = wishes.reader == "source" and not wishes.cluster.master
        with _reading(conninfo, environ, wishes, workspace, idle=idle) as source:
            made = write(source, conninfo, to, announce, Local(target))
        if wishes.compact:
            made = compacted(to, made)
        manifest.write(to, made)
        parts.sweep(to, made.parts)
        folder.put(to.folder, target, workspace)
    return made


def _export_there(conninfo: str, url: str, environ: Mapping[str, str], wishes: Wishes, announce: Announce) -> Manifest:
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        _reading(conninfo, environ, wishes, Path(scratch)) as source,
    ):
        return add(source, conninfo, Hadoop(source.spark, url), announce, compact=wishes.compact)


def add(source: Source, conninfo: str, place: Hadoop, announce: Announce, *, compact: bool = False) -> Manifest:
    """Adds what is new to the export in a folder that cannot be replaced as a whole. Raises ExportFailed."""
    with remote.draft(place, conninfo) as draft:
        made = write(source, conninfo, place, announce, place)
        if compact:
            made = compacted(place, made)
        draft.commit(made)
    return made


def compacted(place: Place, made: Manifest) -> Manifest:
    """The same export with its small files gathered; the files gathered from are still there."""
    return manifest.with_parts(made, parts.compact(place, made.parts))


@contextmanager
def _reading(
    conninfo: str, environ: Mapping[str, str], wishes: Wishes, scratch: Path, *, idle: bool = False
) -> Iterator[Source]:
    """What reads the database, by a Spark that is opened for it, or by the one that spark-submit has opened.

    With `idle` no row comes to Java.
    """
    by_jdbc = wishes.reader == "jdbc"
    if is_submitted(environ):
        with session.joined(scratch / "spark") as spark:
            yield jdbc(spark, conninfo, wishes.heaviest) if by_jdbc else AdbcSource(spark, conninfo)
        return
    # Refusals first: the start of Spark takes seconds.
    jar = driver.find(wishes.jdbc_jar) if by_jdbc else None
    with connections.connect(conninfo) as connection:
        if by_jdbc:
            address.of(connection)
        brief = counts.estimate(connection) < BRIEF_MESSAGES or idle
    runtime = java.find(java.candidates(environ))
    if by_jdbc and jar is None:
        jar = driver.fetch(runtime, scratch / "driver")
    with session.opened(runtime, jar, scratch / "spark", brief=brief, cluster=wishes.cluster) as spark:
        yield jdbc(spark, conninfo, wishes.heaviest) if by_jdbc else AdbcSource(spark, conninfo)


@contextmanager
def reached(target: Target, environ: Mapping[str, str], cluster: Cluster = session.HERE) -> Iterator[Place]:
    """Where an export lies; behind a URL Spark's Java reaches it. Raises ExportFailed."""
    if isinstance(target, Path):
        yield Local(target)
        return
    with failures_as_ours(), TemporaryDirectory(ignore_cleanup_errors=True) as scratch, ExitStack() as stack:
        if is_submitted(environ):
            spark = stack.enter_context(session.joined(Path(scratch)))
        else:
            runtime = java.find(java.candidates(environ))
            spark = stack.enter_context(session.opened(runtime, None, Path(scratch), brief=True, cluster=cluster))
        yield Hadoop(spark, target)


@failures_as_ours()
def verify(conninfo: str, place: Place, say: Callable[[str], None]) -> None:
    """Verifies an export, by its files, and against the database where it came from that; names holes.

    Raises ExportDamaged with the number of problems, each of which was said; FolderRefused where there is no export.
    """
    made = manifest.read(place)
    if made is None:
        raise FolderRefused(f"{place} holds no export with a list of its files: export to it once more.")
    found = check.of_files(place, made)
    with connections.connect(conninfo) as broker:
        connections.bind(broker)
        if connections.database(broker) == made.database:
            found += check.against(broker, place, made)
        else:
            say("Not compared with the broker: its database is another than that of the export.")
    for line in (*check.holes(made), *found):
        say(line)
    if found:
        raise ExportDamaged(f"{place} is not what was exported at {made.taken_at}: {len(found)} problems, see above.")


def jdbc(spark: SparkSession, conninfo: str, heaviest: int) -> JdbcSource:
    """The database that libpq reaches, as JDBC reaches it. Raises SocketRefused."""
    with connections.connect(conninfo) as connection:
        return JdbcSource(spark, address.of(connection), heaviest)


def write(source: Source, conninfo: str, to: Place, announce: Announce, earlier: Place | None = None) -> Manifest:
    """Writes the files of an export, up to the first table that differs from the broker's; returns their manifest.

    What the place `earlier` holds is taken from there and not read again. Raises LogBusy, SegmentDropped, CountsDiffer,
    or FolderRefused when the earlier export is of another database.
    """
    before = manifest.read(earlier) if earlier else None
    ends = before.ends if before else increments.NOTHING
    with connections.connect(conninfo) as broker:
        # No transaction stays open while Spark writes: it would keep PostgreSQL from cleaning up the hot tables.
        broker.autocommit = True
        connections.bind(broker)
        database = connections.database(broker)
        kept = [part for part in before.parts if _is_kept(part, ends)] if before else []
        if earlier:
            for part in kept:
                to.take(part.path, earlier)
        known = {path for table in manifest.TABLES for path in manifest.files(to, table)}
        moment = capture(source, conninfo, ends.segment, to)
        lineage.require(broker, earlier, before, moment.closed, database)
        increment = replace(moment, closed=increments.after(moment.closed, ends))
        written = list(kept)
        for counted, new in _tables(source, broker, increment, to, kept, known):
            announce(counted)
            require_equal(counted)
            written += new
    return _manifest(before, moment.closed, database, to, written)


def _is_kept(part: Part, ends: Reached) -> bool:
    """Checks have no order to go on by: those of the segment that was open are written anew, with later ones."""
    if part.table in ("transactions_open", "timers") or not part.rows:
        return False
    return part.table != "checks" or (part.segment or 0) < ends.segment


def _manifest(
    before: Manifest | None, ranges: ClosedRange, database: str, to: Place, written: Sequence[Part]
) -> Manifest:
    ends = before.ends if before else increments.NOTHING
    holes = increments.holes(ranges, ends)
    messages = [part for part in written if part.table == "messages" and part.last is not None]
    new = [part for part in messages if (part.last or 0) > ends.log_offset]
    columns = [parts.columns(to, part, "log_offset")["log_offset"].to_numpy() for part in new]
    offsets = numpy.concatenate([numpy.array([], "int64"), *columns])
    unused = increments.unused(increments.after(ranges, ends), ends, offsets, holes)
    return Manifest(
        database=database,
        taken_at=ranges.taken_at.isoformat(),
        rows=manifest.rows(written),
        ends=increments.reached(ranges, ends),
        holes=[*(before.holes if before else ()), *holes],
        unused=[*(before.unused if before else ()), *unused],
        parts=list(written),
    )


def require_equal(counted: Counted) -> None:
    """Raises CountsDiffer unless the files hold as many rows as the broker."""
    if counted.exported != counted.broker:
        raise CountsDiffer(
            f"{counted.table}: the files hold {counted.exported} rows and the broker {counted.broker}, although closed "
            "ranges do not change; the folder is as it was. Please report this."
        )


def _tables(
    source: Source, broker: Connection, moment: Moment, to: Place, kept: Sequence[Part], known: Collection[str]
) -> Iterator[tuple[Counted, list[Part]]]:
    ranges = moment.closed

    def counted(table: str, there: int, *names: str) -> tuple[Counted, list[Part]]:
        new = [part for name in names or (table,) for part in parts.new(to, name, known, kept)]
        return Counted(table, sum(part.rows for part in new), there), new

    messages = _clauses(ranges, lambda one: slices.of_span("log_offset", one.id, one.messages))
    saving.of_slices(source, MESSAGES, messages, to, "messages")
    yield counted("messages", counts.messages(broker, ranges))

    entries = _clauses(ranges, lambda one: slices.of_queues(one.id, one.entries))
    saving.of_slices(source, ENTRIES, entries, to, "entries")
    yield counted("entries", counts.entries(broker, ranges))

    ended = _clauses(ranges, lambda one: slices.of_span("operation_id", one.id, one.operations))
    saving.of_slices(source, ENDED, ended, to, "transactions")
    there = counts.ends(broker, ranges) + moment.counted.halves
    yield counted("transactions", there, "transactions", "transactions_open")

    yield counted("checks", moment.counted.checks)
    yield counted("timers", moment.counted.timers)


def _clauses(ranges: ClosedRange, of: Callable[[ClosedSegment], list[str]]) -> list[str]:
    return [clause for segment in ranges.segments for clause in of(segment)]
