"""Makes the reports of an export: reads its files, computes each report once, writes it, and shows it on a page."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as parquet
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics import java, session
from analytics.errors import FolderRefused
from analytics.files import folder
from analytics.files.folder import Contents
from analytics.job import BRIEF_MESSAGES
from analytics.readers.failures import failures_as_ours
from analytics.reports import page, tables
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


def beside(export: Path) -> Path:
    """Where the reports of an export go by themselves: the export's folder holds an export and nothing else."""
    return export.with_name(f"{export.name}-reports")


def make(
    export: Path,
    target: Path,
    html: Path | None,
    environ: Mapping[str, str],
    cluster: Cluster,
    announce: Callable[[Made], None],
) -> None:
    """Writes the reports of the export to the folder `target`, and their page to `html`, or into that folder.

    `environ` leads to Java. Raises ExportFailed; the target is then as it was before.
    """
    made = tables.require(export)
    _require_outside(export, target, html)
    with failures_as_ours(), folder.workspace(target, REPORT) as workspace:
        finished = workspace / "reports"
        brief = made.rows["messages"] < BRIEF_MESSAGES
        runtime = java.find(java.candidates(environ))
        with session.opened(runtime, None, workspace / "spark", brief=brief, cluster=cluster) as spark:
            write(tables.read(spark, export, made), finished, announce)
        document = {"kind": REPORT.kind, "database": made.database, "taken_at": made.taken_at}
        (finished / MARKER).write_text(json.dumps(document) + "\n", encoding="utf-8")
        text = page.of(made, {name: parquet.read_table(finished / name) for name in NAMES})
        if html is None:
            (finished / PAGE).write_text(text, encoding="utf-8")
        folder.put(finished, target, workspace, REPORT)
        if html:
            _replace(html, text)


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


def _require_outside(export: Path, target: Path, html: Path | None) -> None:
    for place in (target, *([html] if html else [])):
        if export == place or export in place.parents:
            raise FolderRefused(
                f"{place} lies in the export, which holds nothing else: give a place outside of {export}."
            )
    if html and not html.parent.is_dir():
        raise FolderRefused(
            f"{html.parent} is no folder, so the page cannot be written to it: make it, or give another."
        )
    if html and html.is_dir():
        raise FolderRefused(f"{html} is a folder: give the name of a file for the page.")
