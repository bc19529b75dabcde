"""Exports the broker's tables to Parquet: reads, transforms and writes rows, and compares their counts."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy
from pyspark.sql import SparkSession

from analytics import closed, connections
from analytics.closed import ClosedRange, ClosedSegment
from analytics.connections import Connection
from analytics.errors import CountsDiffer, ExportDamaged, FolderRefused
from analytics.export import pipeline, progress
from analytics.export.pipeline import Moment, capture
from analytics.files import compared, folder, increments, manifest, noted, parts, remote
from analytics.files import verify as check
from analytics.files.hadoop import Hadoop, Place
from analytics.files.lake import formats
from analytics.files.manifest import Manifest, Part, Reached
from analytics.files.place import Local
from analytics.readers import counts, opening
from analytics.readers.failures import failures_as_ours
from analytics.readers.opening import Source, Wishes
from analytics.tables import ENDED, ENTRIES, MESSAGES


@dataclass(frozen=True, slots=True)
class Counted:
    """The number of a table's rows in the files, and the number that the broker counts in the same ranges."""

    table: str
    exported: int
    broker: int


Announce = Callable[[Counted], None]


def export(
    spark: SparkSession, conninfo: str, target: Path, workspace: Path, wishes: Wishes, announce: Announce
) -> Manifest:
    """Exports a database to a folder of this machine, by way of files in `workspace`. Raises ExportFailed."""
    to = Local(workspace / "export")
    with progress.shown(spark, wishes.say) if wishes.say else nullcontext():
        made = write(opening.source(spark, conninfo, wishes), conninfo, to, announce, Local(target))
    if wishes.compact:
        made = compacted(to, made)
    manifest.write(to, made)
    parts.sweep(to, made.parts)
    formats.commit(to.folder, target, wishes.format, made)
    folder.put(to.folder, target, workspace)
    return made


def add(source: Source, conninfo: str, place: Hadoop, announce: Announce, *, compact: bool = False) -> Manifest:
    """Adds new rows to an export behind a URL, where no folder can be replaced as a whole. Raises ExportFailed."""
    with remote.draft(place, conninfo) as draft:
        made = write(source, conninfo, place, announce, place)
        if compact:
            made = compacted(place, made)
        draft.commit(made)
    return made


def compacted(place: Place, made: Manifest) -> Manifest:
    """The manifest after small files were merged into larger ones. The small files still exist."""
    return manifest.with_parts(made, parts.compact(place, made.parts))


@failures_as_ours()
def verify(conninfo: str | None, place: Place, say: Callable[[str], None], target: Path | str | None = None) -> None:
    """Verifies the files of an export and reports holes; with `conninfo` also compares them with the database.

    `target` is the folder as it was written in the export's command: the broker noted the export under this name.
    Raises ExportDamaged with the number of problems, after each was passed to `say`; FolderRefused if there is no
    export.
    """
    made = manifest.read(place)
    if made is None:
        raise FolderRefused(f"{place} holds no export with a list of its files: export to it once more.")
    found = check.of_files(place, made)
    # The problems are printed even if the database is away.
    for line in (*check.holes(made), *found):
        say(line)
    differences = _against(conninfo, place, made, target, say)
    for line in differences:
        say(line)
    if found or differences:
        count = len(found) + len(differences)
        raise ExportDamaged(f"{place} is not what was exported at {made.taken_at}: {count} problems, see above.")


def _against(
    conninfo: str | None, place: Place, made: Manifest, target: Path | str | None, say: Callable[[str], None]
) -> list[str]:
    if conninfo is None:
        say("Not compared with the broker: its database does not belong to the installation.")
        return []
    with connections.connect(conninfo) as broker:
        connections.bind(broker)
        # The two manifests are compared before any field of the manifest is trusted.
        compared = noted.compared(broker, place, made, target)
        changed = [compared] if compared == noted.CHANGED else []
        if connections.database(broker) == made.database:
            if compared == noted.UNNOTED:
                say(compared)
            return [*changed, *check.against(broker, place, made)]
    say("Not compared with the broker: the export is of another database.")
    return changed


def write(source: Source, conninfo: str, to: Place, announce: Announce, earlier: Place | None = None) -> Manifest:
    """Writes the files of an export, and stops at the first table whose row count differs from the broker's.

    Returns the manifest. Rows that the place `earlier` already holds are taken from its files and not read again.
    Raises LogBusy, SegmentDropped, CountsDiffer, or FolderRefused when the earlier export is of another database.
    """
    before = manifest.read(earlier) if earlier else None
    ends = before.ends if before else increments.NOTHING
    with connections.connect(conninfo) as broker:
        # No transaction may stay open while Spark writes: PostgreSQL could not clean up the hot tables.
        broker.autocommit = True
        connections.bind(broker)
        database = connections.database(broker)
        kept = [part for part in before.parts if _is_kept(part, ends)] if before else []
        if isinstance(to, Local) and isinstance(earlier, Local):
            for part in kept:
                to.take(part.path, earlier)
        known = {path for table in manifest.TABLES for path in manifest.files(to, table)}
        moment = capture(source, conninfo, ends.segment, to)
        compared.require_same(broker, earlier, before, moment.closed, database)
        increment = replace(moment, closed=increments.after(moment.closed, ends))
        written = list(kept)
        for counted, new in _tables(source, broker, increment, to, kept, known):
            announce(counted)
            require_equal(counted)
            written += new
    return _manifest(before, moment.closed, database, to, written)


def _is_kept(part: Part, ends: Reached) -> bool:
    """Whether an increment keeps this file.

    Checks have no offsets, so files of checks are written again from the segment that was open at the earlier export.
    """
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
    """Raises CountsDiffer if the number of rows in the files differs from the broker's."""
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

    messages = _clauses(ranges, lambda one: closed.slices_of_span("log_offset", one.id, one.messages))
    pipeline.of_slices(source, MESSAGES, messages, to, "messages")
    yield counted("messages", counts.messages(broker, ranges))

    entries = _clauses(ranges, lambda one: closed.slices_of_queues(one.id, one.entries))
    pipeline.of_slices(source, ENTRIES, entries, to, "entries")
    yield counted("entries", counts.entries(broker, ranges))

    ended = _clauses(ranges, lambda one: closed.slices_of_span("operation_id", one.id, one.operations))
    pipeline.of_slices(source, ENDED, ended, to, "transactions")
    there = counts.ends(broker, ranges) + moment.counted.halves
    yield counted("transactions", there, "transactions", "transactions_open")

    yield counted("checks", moment.counted.checks)
    yield counted("timers", moment.counted.timers)


def _clauses(ranges: ClosedRange, of: Callable[[ClosedSegment], list[str]]) -> list[str]:
    return [clause for segment in ranges.segments for clause in of(segment)]
