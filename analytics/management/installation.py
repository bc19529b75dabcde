"""Exports an installation: its one database, or each of its cells into a folder `cell=NAME`.

Cells are exported one after the other, each at its own moment. If a cell fails, for example because it is away, its
earlier export stays and the other cells are still exported; at the end the command fails and names the cell.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from analytics.errors import ExportFailed, ExportIncomplete, FolderRefused
from analytics.export import job
from analytics.export.job import Announce
from analytics.files import folder, listed, noted
from analytics.files.folder import EXPORT
from analytics.files.hadoop import Hadoop, Place
from analytics.files.lake import formats
from analytics.files.manifest import Manifest
from analytics.files.place import Local
from analytics.readers import opening
from analytics.readers.cells import Database, databases, require_own
from analytics.readers.failures import failures_as_ours
from analytics.readers.opening import Target, Wishes

# Returns the function that announces the tables of a cell. The name is empty in an installation with one database.
AnnounceOf = Callable[[str], Announce]


@failures_as_ours()
def export(
    control: str, target: Target, environ: Mapping[str, str], wishes: Wishes, announce: AnnounceOf
) -> Sequence[str]:
    """Exports to a local folder or to a URL. Calls `announce` for each table when it is written and counted.

    `environ` is used to find Java. Returns the reasons if a database did not accept the note of the export. Raises
    ExportFailed, after which the target is unchanged, or ExportIncomplete if some cells were not exported.
    """
    formats.require(wishes.format, target)
    found = databases(control)
    if isinstance(target, Path):
        return _here(target, found, environ, wishes, announce)
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        opening.opened(control, environ, wishes, Path(scratch)) as spark,
    ):
        return _there(spark, Hadoop(spark, target), found, wishes, announce)


def _here(
    target: Path, found: Sequence[Database], environ: Mapping[str, str], wishes: Wishes, announce: AnnounceOf
) -> Sequence[str]:
    def export_cell(cell: Database, conninfo: str) -> Manifest:
        place = target / listed.of_cell(cell.name)
        with folder.workspace(place) as workspace:
            return job.export(spark, conninfo, place, workspace, wishes, announce(cell.name))

    earlier = listed.read(Local(target))
    is_of_one = len(found) == 1 and earlier is None
    names = dict.fromkeys([*(cell.name for cell in found), *(earlier or ())])
    [control, *_] = found
    assert control.conninfo is not None
    with (
        folder.workspace(target, EXPORT if is_of_one else listed.contents(target, names)) as scratch,
        opening.opened(control.conninfo, environ, wishes, scratch, idle=wishes.writes_in_workers) as spark,
    ):
        if not is_of_one:
            target.mkdir(exist_ok=True)
            listed.write(Local(target), names)
            listed.adopt(target, control.name)
            return _each(found, export_cell, wishes)
        made = job.export(spark, control.conninfo, target, scratch, wishes, announce(""))
    return _noted("", control.conninfo, wishes, made)


def _there(
    spark: SparkSession, place: Hadoop, found: Sequence[Database], wishes: Wishes, announce: AnnounceOf
) -> Sequence[str]:
    def add(to: Hadoop, conninfo: str, name: str) -> Manifest:
        source = opening.source(spark, conninfo, wishes)
        return job.add(source, conninfo, to, announce(name), compact=wishes.compact)

    [control, *others] = found
    earlier = listed.read(place)
    assert control.conninfo is not None
    if not others and earlier is None:
        return _noted("", control.conninfo, wishes, add(place, control.conninfo, ""))
    names = [*(cell.name for cell in found), *(earlier or ())]
    _require_of_cells(place, control.name, names)
    listed.write(place, dict.fromkeys(names))
    return _each(
        found, lambda cell, conninfo: add(place.within(listed.of_cell(cell.name)), conninfo, cell.name), wishes
    )


def _require_of_cells(place: Hadoop, control: str, names: Collection[str]) -> None:
    """Raises FolderRefused unless the folder is empty or holds only exports of these cells."""
    there = place.names()
    if EXPORT.marker in there:
        raise FolderRefused(
            f"{place} holds the export of one database, and there are several cells now: move its contents to "
            f"{listed.of_cell(control)} in it, from which the next export goes on, or give a new folder."
        )
    if strange := there - listed.known(names):
        raise FolderRefused(f"{place} holds {min(strange)} and no exports of these cells: {EXPORT.way_out}.")


def _each(found: Sequence[Database], export_cell: Callable[[Database, str], Manifest], wishes: Wishes) -> Sequence[str]:
    """Exports each cell. After the last cell raises ExportIncomplete with the names of the cells that failed."""
    failed: list[str] = []
    reasons: list[str] = []
    installation: str | None = None
    for cell in found:
        try:
            with failures_as_ours():
                conninfo, installation = require_own(cell, installation)
                made = export_cell(cell, conninfo)
            reasons += _noted(f"{cell.name}: ", conninfo, wishes, made)
        except ExportFailed as failure:
            failed.append(f"{cell.name} ({failure.code}: {str(failure).rstrip('.')})")
    if failed:
        raise ExportIncomplete(
            f"{len(failed)} of {len(found)} cells were not exported: {'; '.join(failed)}. Each of them keeps the "
            "export that it had, if any, and the others have a new one; export again to add what is missing."
        )
    return reasons


def _noted(cell: str, conninfo: str, wishes: Wishes, made: Manifest) -> Sequence[str]:
    """Notes the export in the cell's database.

    Called only when all files are in place, because retention then drops the exported rows.
    """
    reason = noted.note(conninfo, wishes.noted_as, made)
    return [] if reason is None else [f"{cell}{reason}"]


def verify(control: str, place: Place, say: Callable[[str], None], target: Target) -> None:
    """Verifies an export as `job.verify`, or the exports of all cells; a line about a cell begins with its name.

    Each cell has noted its export under `target`, the folder of all cells. Raises ExportDamaged, FolderRefused, or
    ExportIncomplete with the names of the cells whose export is damaged or missing.
    """
    exports = listed.each(place)
    if "" in exports:
        job.verify(control, place, say, target)
        return
    found = {cell.name: cell for cell in databases(control)}
    failed = [f"{name} (it is in no export here)" for name in found if name not in exports]
    for name, of_cell in exports.items():
        cell = found.get(name)
        try:
            job.verify(cell and cell.conninfo, of_cell, _of(name, say), target)
        except ExportFailed as failure:
            failed.append(f"{name} ({failure.code}: {str(failure).rstrip('.')})")
    if failed:
        raise ExportIncomplete(f"{len(failed)} of {len(exports)} cells are not verified: {'; '.join(failed)}.")


def _of(name: str, say: Callable[[str], None]) -> Callable[[str], None]:
    return lambda line: say(f"{name}: {line}")
