"""Makes the reports of an export: reads its files, computes each report once, writes it, and shows it on a page."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pyarrow.parquet as parquet
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.errors import FolderRefused
from analytics.files import folder, remote
from analytics.files.folder import Contents
from analytics.files.hadoop import Hadoop
from analytics.files.place import Local
from analytics.readers import opening
from analytics.readers.failures import failures_as_ours
from analytics.readers.opening import BRIEF_MESSAGES, Target
from analytics.reports import page, tables
from analytics.reports.catalog import NAMES, REPORTS
from analytics.reports.tables import Export, Tables
from analytics.session import Cluster

MARKER = "report.json"
PAGE = "report.html"
REPORT = Contents("a", "report", MARKER, "mqbroker report", frozenset((MARKER, PAGE, *NAMES)))


@dataclass(frozen=True, slots=True)
class Made:
    """A report that was written, and the number of its rows."""

    name: str
    rows: int


def beside(export: Target) -> Target:
    """The default folder for reports, beside the export: the export's own folder may hold nothing else."""
    if isinstance(export, Path):
        return export.with_name(f"{export.name}-reports")
    return f"{export.rstrip('/')}-reports"


def make(
    export: Target,
    target: Target,
    html: Path | None,
    environ: Mapping[str, str],
    cluster: Cluster,
    announce: Callable[[Made], None],
) -> None:
    """Writes the reports of the export to the folder `target`.

    Their page goes to the file `html`, or into the same folder.

    `environ` is used to find Java, which reaches folders behind a URL; for a program that spark-submit started, it is
    that program's environment. Raises ExportFailed, after which the target is unchanged.
    """
    known = tables.exports(Local(export)) if isinstance(export, Path) else []
    _require_outside(export, target, html)
    with failures_as_ours(), _workspace(target) as workspace:
        finished = workspace / "reports"
        # The size of an export behind a URL is only known once Java runs.
        brief = sum(each.made.rows["messages"] for each in known) < BRIEF_MESSAGES
        with opening.of_files(environ, workspace / "spark", brief=brief, cluster=cluster) as spark:
            there = None if isinstance(target, Path) else Hadoop(spark, target)
            if there:
                remote.require_reports(there, REPORT)
            exports = known if isinstance(export, Path) else tables.exports(Hadoop(spark, export))
            write({each.cell: tables.read(spark, each) for each in exports}, finished, announce)
            text = _finish(finished, exports, html)
            if there:
                remote.put(finished, there, REPORT)
        if isinstance(target, Path):
            folder.put(finished, target, workspace, REPORT)
        if html:
            # In one step, so that a reader never sees an incomplete page.
            Local(html.parent).write(html.name, text.encode())


@contextmanager
def _workspace(target: Target) -> Iterator[Path]:
    if isinstance(target, Path):
        with folder.workspace(target, REPORT) as workspace:
            yield workspace
    else:
        with TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            yield Path(scratch)


def _finish(finished: Path, exports: Sequence[Export], html: Path | None) -> str:
    """Writes the page into the folder of the reports, unless `html` names another file. Returns the page."""
    # With several cells, the control's database and the earliest moment: up to this moment the reports are complete.
    document = {"kind": REPORT.kind, "database": exports[0].made.database, "taken_at": tables.taken_at(exports)}
    (finished / MARKER).write_text(json.dumps(document) + "\n", encoding="utf-8")
    text = page.of(exports, {name: parquet.read_table(finished / name) for name in NAMES})
    if html is None:
        (finished / PAGE).write_text(text, encoding="utf-8")
    return text


def write(exports: Mapping[str, Tables], to: Path, announce: Callable[[Made], None]) -> None:
    """Writes each report to its own folder, with one file, in the new folder `to`.

    This program writes the files even if a cluster computes the reports. File names are never used twice. Reports of
    several cells have a column `cell`: a topic, a transaction, and an entry with its message lie in one cell, and each
    cell has its own offsets.
    """
    for report in REPORTS:
        place = to / report.name
        place.mkdir(parents=True)
        frames = [
            report.make(of).select(F.lit(cell).alias("cell"), "*") if cell else report.make(of)
            for cell, of in exports.items()
        ]
        order = (*report.order, "cell") if "" not in exports else report.order
        made = ordered(reduce(DataFrame.unionByName, frames), order).toArrow()
        parquet.write_table(made, place / f"part-{uuid4()}.parquet")
        announce(Made(report.name, made.num_rows))


def ordered(frame: DataFrame, order: tuple[str, ...]) -> DataFrame:
    """The frame in one partition, sorted by these columns; nulls are last."""
    return frame.repartition(1).sortWithinPartitions(*map(_direction, order))


def _direction(column: str) -> Column:
    name = column.removeprefix("-")
    return F.desc_nulls_last(name) if column != name else F.asc_nulls_last(name)


def _require_outside(export: Target, target: Target, html: Path | None) -> None:
    for place in (target, *([html] if html else [])):
        if _lies_in(place, export):
            raise FolderRefused(
                f"{place} lies in the export, which holds nothing else: give a place outside of {export}."
            )
    if html and not html.parent.is_dir():
        raise FolderRefused(
            f"{html.parent} is no folder, so the page cannot be written to it: make it, or give another."
        )
    if html and html.is_dir():
        raise FolderRefused(f"{html} is a folder: give the name of a file for the page.")


def _lies_in(place: Target, export: Target) -> bool:
    if isinstance(place, Path) and isinstance(export, Path):
        return export == place or export in place.parents
    return f"{place}/".startswith(f"{str(export).rstrip('/')}/")
