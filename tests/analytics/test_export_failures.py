"""What Spark's Python workers fail at is one sentence, too: the database's own words, or what their Python lacks."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from pyspark.sql import SparkSession

from analytics.errors import ExportFailed
from analytics.export import job
from analytics.files.place import Local
from analytics.readers.adbc import AdbcSource
from analytics.readers.failures import failures_as_ours
from tests.analytics.conftest import done
from tests.analytics.past import Past

COLUMNS = "SELECT column_name FROM information_schema.columns WHERE table_name = 'commit_log' AND column_name <> 'body'"
ON_LOOPBACK = ("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1")

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def blind(database: str, past: Past) -> Iterator[str]:
    """The past of a broker, for a role that reads all of it but the bodies of messages."""
    parts = urlsplit(database)
    name = f"blind_in_{parts.path[1:]}"
    role = sql.Identifier(name)
    # Only the embedded server's superuser, who has the same password, may make roles.
    with psycopg.connect(database, user="postgres", autocommit=True) as connection:
        columns = sql.SQL(", ").join(sql.Identifier(column) for (column,) in connection.execute(COLUMNS))
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'blind'").format(role))
        connection.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}").format(role))
        connection.execute(sql.SQL("REVOKE SELECT ON commit_log FROM {}").format(role))
        connection.execute(sql.SQL("GRANT SELECT ({}) ON commit_log TO {}").format(columns, role))
        yield parts._replace(netloc=f"{name}:blind@{parts.netloc.rpartition('@')[2]}").geturl()
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (name,))
        connection.execute(sql.SQL("DROP OWNED BY {}").format(role))
        connection.execute(sql.SQL("DROP ROLE {}").format(role))


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python of the same version, without packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    return tmp_path / "bare" / "bin" / "python"


def test_what_postgresql_refuses_to_a_worker_is_said_in_its_words_also_behind_a_url(blind: str, tmp_path: Path) -> None:
    failed = done(blind, (tmp_path / "export").as_uri())

    assert failed.returncode == 1, failed.stdout
    assert failed.stderr.startswith("CommandError: The database did not answer as it should: ")
    assert "permission denied for table commit_log" in failed.stderr
    assert failed.stderr.endswith(" (export_failed)\n")
    assert len(failed.stderr.splitlines()) == 1


def test_what_postgresql_refuses_to_the_command_is_said_in_its_words(
    blind: str, database: str, spark: SparkSession, tmp_path: Path
) -> None:
    with psycopg.connect(database, user="postgres", autocommit=True) as connection:
        role = sql.Identifier(urlsplit(blind).username or "")
        connection.execute(sql.SQL("REVOKE SELECT ON timer FROM {}").format(role))

    with pytest.raises(ExportFailed) as failed, failures_as_ours():
        job.write(AdbcSource(spark, blind), blind, Local(tmp_path / "export"), lambda counted: None)

    assert str(failed.value).startswith("The database did not answer as it should: ")
    assert "permission denied for table timer" in str(failed.value)
    assert len(str(failed.value).splitlines()) == 1


@pytest.mark.long
def test_workers_without_the_reader_are_told_what_to_install(reader: str, bare: Path, tmp_path: Path) -> None:
    target = tmp_path / "export"

    failed = done(reader, target, "--master", "local[1]", *ON_LOOPBACK, PYSPARK_PYTHON=str(bare))

    assert failed.returncode == 1, failed.stdout
    last = failed.stderr.splitlines()[-1]
    assert last.startswith("CommandError: Spark's Python workers lack ")
    assert last.endswith(
        ": install pyarrow, adbc-driver-postgresql and msgspec for the Python that PYSPARK_PYTHON names, or export by "
        "--reader jdbc. (extra_missing)"
    )
    assert not target.exists()
