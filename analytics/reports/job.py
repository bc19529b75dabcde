"""Makes the reports of an export: reads its files, computes each report once, writes it, and shows it on a page."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as parquet
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics import java, session
from analytics.errors import FolderRefused
from analytics.files import folder
from analytics.files.folder import Contents
from analytics.files.hadoop import Hadoop
from analytics.files.manifest import Manifest
from analytics.files.place import Local
from analytics.job import BRIEF_MESSAGES, Target
from analytics.readers.failures import failures_as_ours
from analytics.reports import page, remote, tables
from analytics.reports.catalog import NAMES, REPORTS
from analytics.reports.tables import Tables
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
    """Where the reports of an export go by themselves: the export's folder holds an export and nothing else."""
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
    """Writes the reports of the export to the folder `target`, and their page to `html`, or into that folder.

    `environ` leads to Java, which reaches what is behind a URL. Raises ExportFailed; the target is then as it was.
    """
    known = tables.require(Local(export)) if isinstance(export, Path) else None
    _require_outside(export, target, html)
    with failures_as_ours(), _workspace(target) as workspace:
        finished = workspace / "reports"
        # How large an export behind a URL is is known when Java runs.
        brief = known is None or known.rows["messages"] < BRIEF_MESSAGES
        runtime = java.find(java.candidates(environ))
        with session.opened(runtime, None, workspace / "spark", brief=brief, cluster=cluster) as spark:
            there = None if isinstance(target, Path) else Hadoop(spark, target)
            if there:
                remote.require_replaceable(there, REPORT)
            place = Local(export) if isinstance(export, Path) else Hadoop(spark, export)
            made = known or tables.require(place)
            write(tables.read(spark, place, made), finished, announce)
            text = _finish(finished, made, html)
            if there:
                remote.put(finished, there, REPORT)
        if isinstance(target, Path):
            folder.put(finished, target, workspace, REPORT)
        if html:
            _replace(html, text)


@contextmanager
def _workspace(target: Target) -> Iterator[Path]:
    if isinstance(target, Path):
        with folder.workspace(target, REPORT) as workspace:
            yield workspace
    else:
        with TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            yield Path(scratch)


def _finish(finished: Path, made: Manifest, html: Path | None) -> str:
    """The page, which lies among the reports unless it goes to a file of its own."""
    document = {"kind": REPORT.kind, "database": made.database, "taken_at": made.taken_at}
    (finished / MARKER).write_text(json.dumps(document) + "\n", encoding="utf-8")
    text = page.of(made, {name: parquet.read_table(finished / name) for name in NAMES})
    if html is None:
        (finished / PAGE).write_text(text, encoding="utf-8")
    return text


def write(of: Tables, to: Path, announce: Callable[[Made], None]) -> None:
    """Writes every report to a folder of its own in the new folder `to`, one file each."""
    for report in REPORTS:
        place = to / report.name
        ordered(report.make(of), report.order).write.parquet(str(place))
        announce(Made(report.name, sum(parquet.read_metadata(file).num_rows for file in place.glob("*.parquet"))))


def ordered(frame: DataFrame, order: tuple[str, ...]) -> DataFrame:
    """The frame in one piece, in this order; nulls are last."""
    return frame.repartition(1).sortWithinPartitions(*map(_direction, order))


def _direction(column: str) -> Column:
    name = column.removeprefix("-")
    return F.desc_nulls_last(name) if column != name else F.asc_nulls_last(name)


def _replace(file: Path, text: str) -> None:
    """Writes the page beside its place and renames it, so that a reader never has a part of it."""
    unfinished = file.with_name(f".{file.name}.unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)


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
