"""Exports behind a URL: files are added in place by Hadoop's FileSystem, and the manifest makes them an export."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from analytics.errors import ExportFailed, ExportUnderWay, FolderRefused
from analytics.export import job
from analytics.export.job import Counted
from analytics.files import manifest, remote
from analytics.files.hadoop import Hadoop
from analytics.files.manifest import Manifest
from analytics.files.place import Local
from analytics.files.remote import Draft
from analytics.readers.adbc import AdbcSource
from tests.analytics import writers
from tests.analytics.conftest import start
from tests.analytics.exports import listed, messages, nothing, problems
from tests.analytics.parquet import rows, sign, transactions
from tests.analytics.writers import Connection

PINNED = (
    "SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() "
    "AND datname = current_database()"
)
WAY_OUT = "give a new or an empty folder, or one that holds an export and nothing else."


@pytest.fixture(scope="module")
def disk(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What viewfs://tests/ shows: a file system of Hadoop's own, whose paths mean nothing to Python."""
    folder = tmp_path_factory.mktemp("viewfs")
    context: Any = spark._jsc
    context.hadoopConfiguration().set("fs.viewfs.mounttable.tests.link./disk", folder.as_uri())
    return folder


@pytest.fixture
def target(request: pytest.FixtureRequest, disk: Path, tmp_path: Path) -> tuple[str, Path]:
    """The URL of a folder, and where its files really are."""
    if getattr(request, "param", "viewfs") == "file":
        return f"file://{tmp_path}/export", tmp_path / "export"
    return f"viewfs://tests/disk/{tmp_path.name}", disk / tmp_path.name


@pytest.fixture
def place(spark: SparkSession, target: tuple[str, Path]) -> Hadoop:
    """The folder by its URL."""
    return Hadoop(spark, target[0])


@pytest.fixture
def folder(target: tuple[str, Path]) -> Path:
    """The same folder by its path: what the file system that the URL names keeps there."""
    return target[1]


def add(spark: SparkSession, database: str, place: Hadoop, *, compact: bool = False) -> Manifest:
    """An export to the place, or what is new to it."""
    job.add(AdbcSource(spark, database), database, place, lambda counted: None, compact=compact)
    return listed(place)


def files(folder: Path) -> list[str]:
    """All files that a reader of the folder looks at, and such as begin with `_`."""
    paths = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in paths if not path.endswith(".crc"))


def offsets(folder: Path) -> list[int]:
    """The log offsets in all files of the folder."""
    return [row["log_offset"] for row in messages(folder)]


@pytest.mark.parametrize("target", ["file", pytest.param("viewfs", marks=pytest.mark.long)], indirect=True)
def test_an_increment_is_added_and_leaves_the_listed_files_and_nothing_else(
    spark: SparkSession, busy_database: str, writer: Connection, place: Hadoop, folder: Path
) -> None:
    writers.live(writer, ended=4, undecided=2)
    first = add(spark, busy_database, place)
    for transaction_id in [row["transaction_id"] for row in rows(folder / "transactions_open")]:
        writers.end(writer, transaction_id, "COMMIT")
    writers.live(writer, ended=3, undecided=1)
    written = {part.path: (folder / part.path).stat().st_mtime_ns for part in first.parts if part.table == "messages"}

    second = add(spark, busy_database, place)

    assert files(folder) == sorted([manifest.NAME, *(part.path for part in second.parts)])
    assert {path: (folder / path).stat().st_mtime_ns for path in written} == written
    assert offsets(folder) == list(range(10))
    states = [row["state"] for row in transactions(folder)]
    assert (len(states), states.count("PREPARED")) == (10, 1)
    assert problems(busy_database, place) == []
    assert problems(busy_database, Local(folder)) == []


@pytest.mark.long
def test_small_files_are_gathered_behind_a_url_as_well(
    spark: SparkSession, busy_database: str, writer: Connection, place: Hadoop, folder: Path
) -> None:
    writers.live(writer, ended=4, undecided=0)
    add(spark, busy_database, place)
    writers.live(writer, ended=4, undecided=0)

    gathered = add(spark, busy_database, place, compact=True)

    days = {part.path.rpartition("/")[0] for part in gathered.parts}
    assert len(gathered.parts) == len(days)
    assert files(folder) == sorted([manifest.NAME, *(part.path for part in gathered.parts)])
    assert offsets(folder) == list(range(8))
    assert problems(busy_database, place) == []


@pytest.mark.long
def test_what_is_damaged_behind_a_url_is_named(
    spark: SparkSession, busy_database: str, writer: Connection, place: Hadoop, folder: Path
) -> None:
    writers.live(writer, ended=2, undecided=0)
    [part] = [part for part in add(spark, busy_database, place).parts if part.table == "messages"]
    (folder / part.path).unlink()

    assert problems(busy_database, place)[0] == f"{part.path} is missing, with {part.rows} rows."


def test_a_failing_export_leaves_the_earlier_one_as_it_was(
    spark: SparkSession, busy_database: str, writer: Connection, place: Hadoop, folder: Path
) -> None:
    writers.live(writer, ended=2, undecided=1)
    add(spark, busy_database, place)
    before = files(folder)
    writers.live(writer, ended=2, undecided=0)
    pinned = []

    def fail(counted: Counted) -> None:
        # The session that holds the lock must not keep PostgreSQL from cleaning up.
        pinned.append(writer.execute(PINNED).fetchone())
        raise ExportFailed(f"After {counted.table}.")

    with pytest.raises(ExportFailed):
        job.add(AdbcSource(spark, busy_database), busy_database, place, fail)

    assert pinned == [(0,)]
    assert files(folder) == before
    assert problems(busy_database, place) == []


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", ["file"], indirect=True)
def test_what_killed_exports_left_is_no_part_of_the_export_and_goes_with_the_next(
    spark: SparkSession, busy_database: str, writer: Connection, place: Hadoop, folder: Path
) -> None:
    writers.live(writer, ended=4, undecided=1)
    kill_in_the_middle(busy_database, place)
    assert (folder / remote.BEGUN).is_file()
    assert manifest.read(place) is None
    left = {path for path in files(folder) if path.startswith("messages/")}
    assert left

    made = add(spark, busy_database, place)
    assert left.isdisjoint(files(folder))
    writers.live(writer, ended=4, undecided=1)
    kill_in_the_middle(busy_database, place)

    assert listed(place) == made
    assert len(offsets(folder)) > 5
    add(spark, busy_database, place)
    assert offsets(folder) == list(range(10))
    assert problems(busy_database, place) == []


def kill_in_the_middle(database: str, place: Hadoop) -> None:
    """An export that is killed when the first of its tables was written."""
    with start(database, str(place)) as export:
        assert export.stdout is not None
        assert any(line.startswith("messages") for line in export.stdout)
        export.kill()


def test_only_one_export_at_a_time_goes_to_a_url(busy_database: str, place: Hadoop) -> None:
    with (
        remote.draft(place, busy_database),
        pytest.raises(ExportUnderWay) as refused,
        remote.draft(place, busy_database),
    ):
        pass

    assert str(refused.value) == f"Another export to {place} is under way: wait for it, or give another folder."


def test_a_lock_that_was_lost_is_noticed_before_the_manifest_is_written(
    busy_database: str, writer: Connection, place: Hadoop
) -> None:
    def end_the_holder(draft: Draft) -> None:
        writer.execute("SELECT pg_terminate_backend(%s)", (draft.holder.info.backend_pid,))

    with pytest.raises(psycopg.OperationalError):
        commit_after(end_the_holder, busy_database, place)

    assert manifest.read(place) is None


def test_an_export_that_another_one_overtook_does_not_replace_its_manifest(
    busy_database: str, place: Hadoop, folder: Path
) -> None:
    with pytest.raises(ExportUnderWay) as refused:
        commit_after(lambda draft: sign(folder, database="of another broker"), busy_database, place)

    assert str(refused.value) == f"Another export wrote to {place} meanwhile: give another folder."
    assert json.loads((folder / manifest.NAME).read_text())["database"] == "of another broker"


def commit_after(event: Callable[[Draft], None], database: str, place: Hadoop) -> None:
    """An export of nothing, with something that happens before its manifest is written."""
    with remote.draft(place, database) as draft:
        event(draft)
        draft.commit(nothing(database))


def refusal(place: Hadoop, database: str) -> str:
    """Why an export to the place is refused."""
    with pytest.raises(FolderRefused) as refused, remote.draft(place, database):
        pass
    return str(refused.value)


def test_other_files_are_refused_and_stay(busy_database: str, place: Hadoop, folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    assert refusal(place, busy_database) == f"{place} holds thesis.tex and no export of this database: {WAY_OUT}"

    sign(folder)
    assert refusal(place, busy_database) == f"{place} holds thesis.tex beside an export: {WAY_OUT}"

    (folder / manifest.NAME).write_text("[]")
    assert refusal(place, busy_database) == f"{place} holds export.json and no export: {WAY_OUT}"
    assert files(folder) == ["export.json", "thesis.tex"]


def test_what_another_brokers_export_has_begun_stays(busy_database: str, place: Hadoop, folder: Path) -> None:
    (folder / "messages").mkdir(parents=True)
    (folder / "messages" / "part.parquet").write_bytes(b"of another broker")
    (folder / remote.BEGUN).write_text('{"kind": "mqbroker export that was begun", "database": "1/2"}')

    assert refusal(place, busy_database) == f"{place} holds {remote.BEGUN} and no export of this database: {WAY_OUT}"
    assert files(folder) == [remote.BEGUN, "messages/part.parquet"]


def test_a_scheme_without_a_file_system_is_refused_with_the_package_that_has_it(spark: SparkSession) -> None:
    with pytest.raises(FolderRefused) as refused:
        Hadoop(spark, "s3a://bucket/export")

    assert str(refused.value).startswith("Spark has no file system for s3a://bucket/export (")
    assert "--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3." in str(refused.value)
    assert str(refused.value).endswith("or export to a folder and copy it.")
