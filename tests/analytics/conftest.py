"""The characters of the export's tests: databases of their own, the past of a broker, Spark, and what was exported."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import django
import psycopg
import pytest
from django.conf import settings
from psycopg import sql
from pyspark.sql import SparkSession

from analytics import java, session
from analytics.errors import DriverMissing
from analytics.java import Java
from analytics.readers import driver
from analytics.session import Cluster
from analytics.stream import register
from tests import packages
from tests.analytics.frames import Frames
from tests.analytics.history import live
from tests.analytics.parquet import sign
from tests.analytics.past import Past
from tests.analytics.writers import Connection
from tests.broker import databases, forks

ROOT = Path(__file__).resolve().parents[2]
# An export whose Java has all the time of a busy machine to write the archive.
KEEPING = """
import functools, sys
from django.core.management import execute_from_command_line
from analytics.management import classes
classes.kept = functools.partial(classes.kept, end_seconds=600)
execute_from_command_line(["manage.py", "export", "--nice", "0", "--to", sys.argv[1]])
"""
EXPORT = (sys.executable, "manage.py", "export", "--to")
# All that a URL, a conninfo string, a Java property or a shell might take amiss.
PASSWORD = "p@ss:w/o?rd #1% '\"\\$&ü"
# All that Spark or Hadoop might take for a list, a pattern or a URL.
NAME = "export of 02:00, [1] {a}*?#%20"


@pytest.fixture(scope="session")
def database(prepared: str) -> Iterator[str]:
    """A database with the past of a broker, which does not change any more."""
    with databases.copied(prepared) as url:
        yield url


@pytest.fixture
def busy_database(prepared: str) -> Iterator[str]:
    """A database to write to while others read."""
    with databases.copied(prepared) as url:
        yield url


@pytest.fixture
def writer(busy_database: str) -> Iterator[Connection]:
    """A producer whose commits the test decides."""
    with psycopg.connect(busy_database) as connection:
        yield connection


@pytest.fixture(scope="session")
def reader(database: str) -> Iterator[str]:
    """The same database, for a role that only reads and has a password as bad as they come."""
    parts = urlsplit(database)
    role = f"reader_of_{parts.path[1:]}"
    name, password = sql.Identifier(role), sql.Literal(PASSWORD)
    # Only the embedded server's superuser, who has the same password, may make roles.
    with psycopg.connect(database, user="postgres", autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} IN ROLE pg_read_all_data").format(name, password))
        netloc = f"{role}:{quote(PASSWORD, safe='')}@{parts.netloc.rpartition('@')[2]}"
        yield parts._replace(netloc=netloc).geturl()
        # Its sessions too: the role that drops the database afterwards may not end those of another role.
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,))
        connection.execute(sql.SQL("DROP ROLE {}").format(name))


@pytest.fixture(scope="session")
def past(database: str) -> Past:
    """What happened in the database before it was exported."""
    # Its rows take what they do not name from the models.
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    django.setup()
    with psycopg.connect(database) as connection:
        past = Past(connection)
        live(past)
    return past


@pytest.fixture(scope="session")
def runtime() -> Java:
    """This machine's Java, or the wheel's."""
    return java.find(java.candidates(os.environ))


@pytest.fixture(scope="session")
def kept_classes(runtime: Java, prepared: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Spark's classes, kept by an export where this environment has none: every later start takes half of the CPU."""
    # The wheel's Java keeps its own classes first.
    for _ in range(2):
        if not java.archive(runtime).exists():
            target = tmp_path_factory.mktemp("first") / "export"
            forks.run([sys.executable, "-c", KEEPING, str(target)], {**os.environ, "DATABASE_URL": prepared})


@pytest.fixture(scope="session")
def jdbc(runtime: Java, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver that an export would take."""
    try:
        return driver.find(settings.JDBC_JAR) or driver.fetch(runtime, tmp_path_factory.mktemp("driver"))
    except DriverMissing:
        packages.skip_for_want_of("libpostgresql-jdbc-java", "PostgreSQL's JDBC driver")


@pytest.fixture(scope="session")
def spark(
    runtime: Java, kept_classes: None, jdbc: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """A session as an export opens it, for all tests: with one task at a time, and the source `mqbroker`."""
    one = Cluster(settings={"spark.sql.shuffle.partitions": "1"}, cores=1)
    with session.opened(runtime, jdbc, tmp_path_factory.mktemp("spark"), brief=True, cluster=one) as opened:
        register(opened)
        yield opened


@pytest.fixture
def frames(spark: SparkSession) -> Frames:
    """Literal rows as frames."""
    return Frames(spark)


@dataclass(frozen=True)
class Killed:
    """An export that was killed in its middle, and what was in its target before and after."""

    target: Path
    before: dict[str, bytes]
    after: dict[str, bytes]


@dataclass(frozen=True)
class Exported:
    """A finished export: where it is, what it said, and how it ended."""

    folder: Path
    out: str
    err: str
    status: int


def start(
    database: str, target: Path | str, *words: str, before: Sequence[str] = (), **environ: str
) -> subprocess.Popen[str]:
    """An export in a process of its own, which the words before it start."""
    return subprocess.Popen(
        [*before, *EXPORT, str(target), *words],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def done(database: str, target: Path | str, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """An export that ends by itself."""
    return forks.run([*EXPORT, str(target), *words], {**os.environ, "DATABASE_URL": database, **environ})


def content(of: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(path.relative_to(of)): path.read_bytes() for path in of.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def killed(reader: str, past: Past, kept_classes: None, jdbc: Path, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """An export to a folder that holds an earlier one, killed when the first of its tables was written."""
    target = tmp_path_factory.mktemp("reports") / "export"
    jar = tmp_path_factory.mktemp("jars") / f"{NAME}.jar"
    jar.symlink_to(jdbc)
    (target / "messages").mkdir(parents=True)
    (target / "messages" / "earlier.parquet").write_bytes(b"of an earlier export")
    sign(target)
    before = content(target)
    with start(reader, target, "--reader", "jdbc", MQBROKER_JDBC_JAR=str(jar)) as export:
        assert export.stdout is not None
        assert any(line.startswith("messages") for line in export.stdout)
        export.kill()
    return Killed(target, before, content(target))


@pytest.fixture(scope="session")
def exported(reader: str, killed: Killed) -> Exported:
    """The past, exported once by JDBC, to where the killed export left off."""
    export = done(reader, killed.target, "--reader", "jdbc")
    return Exported(killed.target, export.stdout, export.stderr, export.returncode)
