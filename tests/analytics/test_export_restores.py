"""Restores: a back-up lacks what an export or a stream has read, and its offsets are assigned again."""

from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from analytics.errors import FolderRefused, LogBehind
from analytics.export import job
from analytics.files import manifest
from analytics.files.place import Local
from tests.analytics import exports, sources, writers
from tests.analytics.parquet import rows
from tests.analytics.writers import Connection

# As a back-up that was taken after the second message.
RESTORE = """
DELETE FROM half_message WHERE log_offset > 1;
DELETE FROM commit_log WHERE log_offset > 1;
SELECT setval('commit_log_offset', 1)
"""


def send(writer: Connection, number: int) -> None:
    """Stores so many halves."""
    writers.live(writer, ended=0, undecided=number)


def restore(writer: Connection) -> None:
    """Brings the database back to its second message."""
    writer.execute(RESTORE)
    writer.commit()


@pytest.fixture
def exported(spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path) -> Local:
    """An export of four messages."""
    send(writer, 4)
    return Local(exports.write(spark, busy_database, tmp_path / "first"))


def test_an_export_does_not_go_on_from_another_database_nor_when_its_offsets_were_assigned_again(
    spark: SparkSession, busy_database: str, writer: Connection, exported: Local, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    of_another = msgspec.structs.replace(exports.listed(exported), database="1/2", parts=[])
    manifest.write(Local(tmp_path / "other"), of_another)
    with pytest.raises(FolderRefused, match=r"The folder holds an export of another database \(1/2, this is "):
        exports.write(spark, busy_database, tmp_path / "refused", tmp_path / "other")

    restore(writer)
    send(writer, 5)

    with pytest.raises(FolderRefused) as refused:
        exports.write(spark, busy_database, tmp_path / "second", exported.folder)

    assert str(refused.value).endswith("or of a later state of this one: give a new folder.")
    said = exports.problems(busy_database, exported)
    assert said[0] == "messages: the broker has another message at the log offset 3, or none."
    assert all(each.endswith("is missing, which the broker has as undecided.") for each in said[1:])


def test_an_export_goes_on_from_what_retention_has_dropped_since(
    spark: SparkSession, busy_database: str, writer: Connection, exported: Local, tmp_path: Path
) -> None:
    writer.execute("DELETE FROM half_message")
    writer.execute("DELETE FROM commit_log")
    writer.commit()
    second = exports.write(spark, busy_database, tmp_path / "second", exported.folder)
    assert rows(second / "transactions_open") == []

    job.verify(busy_database, Local(tmp_path / "second"), pytest.fail)


def test_a_stream_that_has_read_more_than_there_is_says_so(busy_database: str, writer: Connection) -> None:
    send(writer, 4)
    stream = sources.stream(busy_database, table="messages")
    assert stream.latestOffset(stream.initialOffset(), ReadAllAvailable()) == {"log_offset": 4}
    restore(writer)

    with pytest.raises(LogBehind) as refused:
        sources.stream(busy_database, table="messages").latestOffset({"log_offset": 4}, ReadAllAvailable())

    assert str(refused.value) == (
        "This stream has read the log offsets below 4, and the log ends before 2: a back-up was restored, or the "
        "checkpoint is of another database. Begin a new checkpoint."
    )
