"""The export of three cells: one each, with a list, a proof and increments of its own; a cell that is away is named."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as parquet
import pytest
from django.conf import settings
from mqbroker_client import Admin, Producer
from pyspark.sql import SparkSession

from analytics import java, session
from analytics.files import listed, manifest
from analytics.files.folder import workspace
from analytics.readers import driver
from tests.analytics.conftest import ROOT, content
from tests.broker import characters, forks
from tests.broker.cells import Cells
from tests.broker.running import RunningBroker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
NAMES = ("c0", "c1", "c2")
# Of the broker's tests before these there may be other messages.
SENT = {"c0": 3, "c1": 4, "c2": 5}


@dataclass(frozen=True)
class Exported:
    """An export of three cells, and the topic that lies in each."""

    folder: Path
    topics: Sequence[str]
    out: str


def run(control: str, *words: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """A command of `manage.py`."""
    command = [sys.executable, "manage.py", *map(str, words)]
    return forks.run(command, {**os.environ, "DATABASE_URL": control, **environ})


def said(done: subprocess.CompletedProcess[str]) -> str:
    """What a command wrote to the terminal, without the line on Java's classes, which a first start may write."""
    return "".join(line for line in done.stderr.splitlines(keepends=True) if "Java keeps Spark's classes" not in line)


@pytest.fixture(scope="module")
def exported(cells: Cells, broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Messages in each cell, in transactions and at once, and their export."""
    client, topics = broker.client(), []
    producer = Producer(client, characters.name("shop"))
    for cell, count in enumerate(SENT.values()):
        cells.open(cell)
        topics.append(characters.name(f"exported-{cell}"))
        Admin(client).create_topic(topics[-1], queues=2)
        for number in range(count - 1):
            producer.send(topics[-1], f"order {number}".encode())
        producer.begin(topics[-1], b"in a transaction").commit()
    folder = tmp_path_factory.mktemp("exports") / "export"
    done = run(cells.urls[0], "export", "--to", folder)
    assert (done.returncode, said(done)) == (0, "")
    return Exported(folder, topics, done.stdout)


@pytest.fixture
def copied(exported: Exported, tmp_path: Path) -> Path:
    """A copy of the export, to change."""
    return Path(shutil.copytree(exported.folder, tmp_path / "export"))


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of the tests of this process, or one of a reader."""
    if running := SparkSession.getActiveSession():
        yield running
        return
    runtime = java.find(java.candidates(os.environ))
    # A later session of this process has the Java of the first one, and with this Java its classes.
    jdbc = driver.find(settings.JDBC_JAR)
    with session.opened(runtime, jdbc, tmp_path_factory.mktemp("spark"), brief=True) as opened:
        yield opened


def taken_at(folder: Path, cell: str) -> str:
    """The moment of a cell's export."""
    return str(json.loads((folder / f"cell={cell}" / manifest.NAME).read_bytes())["taken_at"])


def test_each_cell_has_an_export_of_its_own_which_is_counted_and_noted_there(exported: Exported, cells: Cells) -> None:
    assert {path.name for path in exported.folder.iterdir()} == {listed.NAME, "cell=c0", "cell=c1", "cell=c2"}
    assert json.loads((exported.folder / listed.NAME).read_bytes())["cells"] == list(NAMES)
    heading, *rows, _ = (line.split() for line in exported.out.splitlines())
    assert heading == ["cell", "table", "exported", "broker"]
    assert [(row[0], row[1]) for row in rows] == [
        (name, table) for name in NAMES for table in ("messages", "entries", "transactions", "checks", "timers")
    ]
    assert all(row[2] == row[3] for row in rows)
    for cell, name in enumerate(NAMES):
        [[target, taken]] = cells.sql(
            cell, "SELECT target, taken_at FROM export WHERE target = %s", str(exported.folder)
        )
        assert (target, taken.isoformat()) == (str(exported.folder), taken_at(exported.folder, name)), name


def test_spark_reads_all_cells_with_a_column_of_their_names(exported: Exported, spark: SparkSession) -> None:
    page = (ROOT / "docs/analytics.md").read_text(encoding="utf-8")
    # The snippet of the section about cells, with a result in place of what it shows.
    snippet = page[page.index("## Several cells") :].split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {"spark": spark}
    exec(snippet.replace("DIR", str(exported.folder)), names)

    messages = names["messages"]
    found = messages.where(messages.topic.isin(list(exported.topics))).groupBy("cell", "topic").count().collect()

    assert {(row["cell"], row["topic"]): row["count"] for row in found} == {
        (name, topic): SENT[name] for name, topic in zip(NAMES, exported.topics, strict=True)
    }


def test_duckdb_reads_all_cells_by_one_pattern(exported: Exported) -> None:
    messages = duckdb.read_parquet(
        f"{exported.folder}/cell=*/messages/**/*.parquet", hive_partitioning=True, union_by_name=True
    )

    found = messages.filter("topic LIKE 'exported-%'").aggregate("cell, topic, count(*)").fetchall()

    assert {(cell, topic): count for cell, topic, count in found} == {
        (name, topic): SENT[name] for name, topic in zip(NAMES, exported.topics, strict=True)
    }


def test_each_cell_is_verified_and_what_is_wrong_is_named_with_its_cell(copied: Path, cells: Cells) -> None:
    whole = run(cells.urls[0], "export", "--verify", copied)
    [damaged, *_] = (copied / "cell=c2" / "messages").rglob("*.parquet")
    damaged.unlink()
    shutil.rmtree(copied / "cell=c1")
    found = run(cells.urls[0], "export", "--verify", copied)

    assert (whole.returncode, said(whole)) == (0, "")
    assert found.returncode == 1
    assert f"c2: {damaged.relative_to(copied / 'cell=c2')} is missing, with " in found.stdout
    assert "2 of 3 cells are not verified: c1 (folder_refused: " in found.stderr
    assert "; c2 (export_damaged: " in found.stderr
    assert found.stderr.endswith(" (export_incomplete)\n")


@pytest.mark.long
def test_a_cell_that_is_away_is_named_and_the_others_have_a_new_export(
    copied: Path, cells: Cells, broker: RunningBroker, exported: Exported
) -> None:
    before = content(copied / "cell=c1")
    producer = Producer(broker.client(), characters.name("shop"))
    producer.send(exported.topics[0], b"new")

    with cells.away(1):
        away = run(cells.urls[0], "export", "--to", copied)
        unseen = run(cells.urls[0], "export", "--verify", copied)

    assert away.returncode == 1
    assert away.stderr.startswith("CommandError: 1 of 3 cells were not exported: c1 (export_failed: The database did ")
    assert away.stderr.endswith("export again to add what is missing. (export_incomplete)\n")
    assert content(copied / "cell=c1") == before
    assert [taken_at(copied, name) > taken_at(exported.folder, name) for name in NAMES] == [True, False, True]
    assert (unseen.returncode, unseen.stderr.count("c1 (export_failed: ")) == (1, 1)

    again = run(cells.urls[0], "export", "--to", copied)

    assert (again.returncode, said(again)) == (0, "")
    # Each goes on from its own.
    held = content(copied / "cell=c1")
    assert {path for path in before if path.startswith(("messages/", "entries/"))} <= held.keys()
    assert run(cells.urls[0], "export", "--verify", copied).returncode == 0


def test_the_export_of_one_database_becomes_that_of_the_control_and_a_cell_without_one_is_missing_in_reports(
    exported: Exported, cells: Cells, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(exported.folder / "cell=c0", tmp_path / "export"))
    before = content(folder)
    # As after a kill: some of it has moved.
    listed_first = b'{"kind":"mqbroker export of cells","format":1,"cells":["c0","c1","c2"]}'
    (folder / listed.NAME).write_bytes(listed_first)
    (folder / "cell=c0").mkdir()
    (folder / "messages").rename(folder / "cell=c0" / "messages")
    [[url]] = cells.sql(0, "SELECT url FROM cell WHERE id = 1")
    cells.sql(0, "UPDATE cell SET url = %s WHERE id = 1", cells.urls[0])
    try:
        with cells.away(2):
            done = run(cells.urls[0], "export", "--to", folder)
    finally:
        cells.sql(0, "UPDATE cell SET url = %s WHERE id = 1", url)

    report = run(cells.urls[0], "report", folder)

    # Another database is not exported as the cell's.
    assert "2 of 3 cells were not exported: c1 (cell_differs: the database at its URL is cell 0 of " in done.stderr
    assert {path.name for path in folder.iterdir()} == {listed.NAME, "cell=c0"}
    held = content(folder / "cell=c0")
    assert {path for path in before if path.startswith(("messages/", "entries/"))} <= held.keys()
    assert report.returncode == 1
    assert f"{folder / 'cell=c1'} holds no export with a list of its files: " in report.stderr


def test_two_exports_of_cells_do_not_write_to_one_folder(copied: Path, cells: Cells) -> None:
    with workspace(copied, listed.contents(copied, NAMES)):
        second = run(cells.urls[0], "export", "--to", copied)

    assert second.stderr.endswith("is under way: wait for it, or give another folder. (export_under_way)\n")


def test_a_folder_with_other_files_is_refused(cells: Cells, copied: Path) -> None:
    (copied / "notes.txt").write_text("mine", encoding="utf-8")

    done = run(cells.urls[0], "export", "--to", copied)

    assert done.stderr.startswith(f"CommandError: {copied} holds notes.txt beside an earlier export: ")


@pytest.mark.long
def test_the_export_of_cells_goes_behind_a_url_too(cells: Cells, exported: Exported, tmp_path: Path) -> None:
    url = (tmp_path / "export").as_uri()
    of_one = Path(shutil.copytree(exported.folder / "cell=c0", tmp_path / "one"))

    first = run(cells.urls[0], "export", "--to", url)
    verified = run(cells.urls[0], "export", "--verify", url)
    refused = run(cells.urls[0], "export", "--to", of_one.as_uri())

    assert [(done.returncode, said(done)) for done in (first, verified)] == [(0, "")] * 2
    assert {path.name for path in (tmp_path / "export").iterdir() if not path.name.startswith(".")} == {
        listed.NAME,
        "cell=c0",
        "cell=c1",
        "cell=c2",
    }
    assert "move its contents to cell=c0 in it, from which the next export goes on" in refused.stderr


@pytest.mark.long
def test_a_nightly_run_exports_all_cells_and_lists_each_report_by_cell(
    cells: Cells, exported: Exported, tmp_path: Path
) -> None:
    folder = tmp_path / "export"
    cells.sql(0, "INSERT INTO nightly_run (day, started_at, tries, failures) VALUES ('2026-03-01', now(), 1, 0)")

    run(cells.urls[0], "nightly", "2026-03-01", MQBROKER_EXPORT_NIGHTLY_TO=str(folder))

    [[tries, failure]] = cells.sql(0, "SELECT tries, failure FROM nightly_run")
    assert (tries, failure) == (1, None)
    reports = tmp_path / "export-reports"
    volumes = parquet.read_table(reports / "volumes").to_pylist()
    found = {(row["cell"], row["topic"]): row["messages"] for row in volumes}
    for (name, sent), topic in zip(SENT.items(), exported.topics, strict=True):
        # Another test has sent one more.
        assert found[name, topic] in (sent, sent + 1)
    page = (reports / "report.html").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"The data of the cell {name}, is that of an export" in page
    # The console's charts add up the cells.
    [[labels]] = cells.sql(0, "SELECT labels FROM report_chart WHERE title = 'Messages by hour'")
    assert len(labels) == len({row["hour"] for row in volumes})
