"""One folder by its URL and by its path: an export goes on by either from what the other has written."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics.export import job
from analytics.files import manifest, noted
from analytics.files.hadoop import Hadoop
from analytics.files.place import Local
from analytics.readers.adbc import AdbcSource
from tests.analytics import exports, writers
from tests.analytics.writers import Connection


def live(writer: Connection) -> None:
    """Ends a transaction and leaves another."""
    writers.end(writer, writers.begin(writer), "COMMIT")
    writers.begin(writer)
    writer.commit()


def by_url(spark: SparkSession, database: str, folder: Path) -> None:
    """Adds to the export in place, as `--to file:///…` does: Hadoop keeps checksums beside the files."""
    made = job.add(AdbcSource(spark, database), database, Hadoop(spark, folder.as_uri()), lambda counted: None)
    assert noted.note(database, folder.as_uri(), made) is None


def test_an_export_goes_on_by_url_by_path_and_by_url_again_and_nothing_else_is_left_by_path(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    folder = tmp_path / "export"
    for export in (by_url, exports.replace, by_url):
        live(writer)

        export(spark, busy_database, folder)

        job.verify(busy_database, Local(folder), pytest.fail)
        if export is exports.replace:
            assert sorted(path.name for path in folder.iterdir()) == sorted([manifest.NAME, *manifest.TABLES])
    assert [row["log_offset"] for row in exports.messages(folder)] == list(range(6))
