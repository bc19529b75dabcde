"""`./mq report`: what it writes of a real export, what its page is, and what it refuses."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from analytics.errors import ExportDamaged, FolderRefused
from analytics.files import manifest
from analytics.files.place import Local
from analytics.reports import job
from analytics.reports.catalog import NAMES
from analytics.reports.job import REPORT
from analytics.session import HERE
from tests.analytics.conftest import NAME, ROOT, Exported, content
from tests.analytics.exports import listed
from tests.analytics.past import Past
from tests.broker import forks

# Nothing of a database: its files are all that the command reads.
AWAY = "postgresql://none@127.0.0.1:1/none"
# Of a few hundred rows.
BRIEF = ("--cores", "1", "--conf", "spark.sql.shuffle.partitions=1")


def report(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mqbroker.embedded.cli", "report", *map(str, words)]
    return forks.run(command, {**os.environ, "DATABASE_URL": AWAY})


def rows(reports: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parquet.read_table(reports / name).to_pylist()
    return found


def test_the_reports_of_an_export_count_what_happened_and_replace_earlier_ones(
    exported: Exported, past: Past, tmp_path: Path
) -> None:
    export, reports = tmp_path / NAME, tmp_path / f"reports of {NAME}"
    shutil.copytree(exported.folder, export)
    before = content(export)
    (reports / "volumes").mkdir(parents=True)
    (reports / "volumes" / "earlier.parquet").write_bytes(b"of earlier reports")
    (reports / "report.json").write_text(json.dumps({"kind": REPORT.kind}))

    done = report(export, "--to", reports, "--html", tmp_path / "page.html", *BRIEF)

    assert (done.returncode, done.stderr) == (0, "")
    # Where it began: a part of a path that was divided at its comma.
    assert list(ROOT.glob("*.unfinished")) == []
    assert content(export) == before
    assert {path.name for path in reports.iterdir()} == {"report.json", *NAMES}
    made = listed(Local(export))
    assert json.loads((reports / "report.json").read_text())["taken_at"] == made.taken_at
    assert made.taken_at[:10] in (tmp_path / "page.html").read_text()

    stored = [message for message in past.messages if message["copy_of"] is None]
    assert sum(row["messages"] for row in rows(reports, "volumes")) == len(stored)
    assert sum(row["body_bytes"] for row in rows(reports, "volumes")) == sum(row["body_bytes"] for row in stored)
    assert sum(row["checks"] for row in rows(reports, "answers")) == len(past.checks)
    assert sum(row["timers"] for row in rows(reports, "timers")) == len(past.timers)
    decided = [row for row in past.transactions if row["decided_at"]]
    assert sum(row["transactions"] for row in rows(reports, "decision_times")) == len(decided)
    discarded = [row for row in past.transactions if row["state"] == "DISCARDED"]
    assert sum(row["transactions"] for row in rows(reports, "discards")) == len(discarded)
    assert [row["level"] for row in rows(reports, "lateness")] == [5, None]
    printed = dict(re.findall(r"^(\w+) +([\d,]+) rows$", done.stdout, re.MULTILINE))
    assert printed == {name: f"{len(rows(reports, name)):,}" for name in NAMES}


@pytest.mark.long
def test_reports_of_a_url_go_to_a_url_and_replace_earlier_ones(exported: Exported, tmp_path: Path) -> None:
    shutil.copytree(exported.folder, tmp_path / "disk" / "export")
    (tmp_path / "disk" / "notes").mkdir()
    (tmp_path / "disk" / "notes" / "mine.txt").write_text("mine")
    # A file system of Hadoop's own, whose paths mean nothing to Python.
    disk = ("--conf", f"spark.hadoop.fs.viewfs.mounttable.tests.link./disk={(tmp_path / 'disk').as_uri()}")

    first = report("viewfs://tests/disk/export", *disk)
    earlier = content(tmp_path / "disk" / "export-reports")
    again = report("viewfs://tests/disk/export", *disk)
    other = report("viewfs://tests/disk/export", "--to", "viewfs://tests/disk/notes", *disk)
    here = report(exported.folder, "--to", tmp_path / "here")

    assert [(done.returncode, done.stderr) for done in (first, again, here)] == [(0, "")] * 3
    reports = tmp_path / "disk" / "export-reports"
    assert {path.name for path in reports.iterdir() if path.suffix != ".crc"} == {"report.json", "report.html", *NAMES}
    assert {name: rows(reports, name) for name in NAMES} == {name: rows(tmp_path / "here", name) for name in NAMES}
    assert (reports / "report.json").read_bytes() == (tmp_path / "here" / "report.json").read_bytes()
    markers = {"report.html", "report.json"}
    assert content(reports).keys() & earlier.keys() == markers | {f".{name}.crc" for name in markers}
    assert other.stderr == (
        "CommandError: viewfs://tests/disk/notes holds mine.txt and no report: give a new or an empty folder, or one "
        "that holds a report and nothing else. (folder_refused)\n"
    )


def refusal(export: Path, to: Path, html: Path | None = None) -> str:
    """Why the reports are refused, which is known before Spark starts."""
    with pytest.raises((ExportDamaged, FolderRefused)) as refused:
        job.make(export, to, html, {}, HERE, lambda made: None)
    return str(refused.value)


@pytest.mark.parametrize("held", [{}, {"export.json": "{}"}, {"export.json": '{"kind": "mqbroker export"}'}])
def test_a_folder_that_is_no_export_is_refused(held: dict[str, str], tmp_path: Path) -> None:
    for name, text in held.items():
        (tmp_path / name).write_text(text)

    assert refusal(tmp_path, tmp_path / "reports") == (
        f"{tmp_path} holds no export with a list of its files: `./mq export --to DIR` makes one."
    )


def test_places_in_the_export_and_folders_with_other_files_are_refused(exported: Exported, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")

    inside = refusal(exported.folder, exported.folder / "reports")
    other = refusal(exported.folder, tmp_path)
    nowhere = refusal(exported.folder, tmp_path / "new", tmp_path / "none" / "page.html")

    assert "lies in the export, which holds nothing else" in inside
    assert f"{tmp_path} holds notes.txt and no report: give a new or an empty folder" in other
    assert f"{tmp_path / 'none'} is no folder, so the page cannot be written to it" in nowhere
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_export_that_lacks_a_file_is_refused_in_one_sentence_that_names_the_file(
    exported: Exported, tmp_path: Path
) -> None:
    made = listed(Local(exported.folder))
    manifest.write(Local(tmp_path), made)

    refused = report(tmp_path)

    assert (refused.returncode, refused.stdout) == (1, "")
    lacks = f"{tmp_path} lacks {made.parts[0].path} and {len(made.parts) - 1} other files"
    assert refused.stderr.startswith(f"CommandError: {lacks}")
    assert refused.stderr.endswith(" (export_damaged)\n")
    assert len(refused.stderr.splitlines()) == 1
