"""The server's processes that an export reads by stay on its processors, and those that others share are left alone."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo
from pyarrow import parquet
from pyspark.sql import SparkSession

from analytics import connections
from analytics.readers import address
from analytics.readers.adbc import AdbcSource
from analytics.tables import CHECKS
from store.db.server_url import database as entry
from tests.analytics.past import Past
from tests.broker import forks
from tests.broker.database_proxy import DatabaseProxy

ALL = os.sched_getaffinity(0) if sys.platform == "linux" else set[int]()
LAST = {max(ALL, default=0)}
# True of all rows that a session reads on the last processor only.
IS_BOUND = rf"pg_read_file('/proc/self/status') ~ 'Cpus_allowed_list:\s+{max(ALL, default=0)}\n'"
BIND = """\
import os, sys
from analytics import connections
os.sched_setaffinity(0, {int(sys.argv[2])})
with connections.connect(sys.argv[1]) as connection:
    connections.bind(connection)
    print(sorted(os.sched_getaffinity(connection.execute("SELECT pg_backend_pid()").fetchone()[0])))
"""
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0 or len(ALL) < 2,
        reason="only root, on Linux and with two processors, keeps the processes of PostgreSQL's user to one of them",
    ),
]


@contextmanager
def on_one_processor() -> Iterator[None]:
    """This process as one that gives way."""
    os.sched_setaffinity(0, LAST)
    try:
        yield
    finally:
        os.sched_setaffinity(0, ALL)


def bound_by_a_process(url: str) -> str:
    """The processors of the session of another process that has one, as it prints them."""
    done = forks.run([sys.executable, "-c", BIND, address.conninfo(entry(url)), str(*LAST)], os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_session_of_a_reader_stays_on_the_processors_of_the_export(
    database: str, past: Past, spark: SparkSession, tmp_path: Path
) -> None:
    # Only the superuser, who has the same password, reads files of the system.
    conninfo = make_conninfo(address.conninfo(entry(database)), user="postgres")
    source = AdbcSource(spark, conninfo)

    with on_one_processor():
        source.save_now(CHECKS, "SELECT 1", IS_BOUND, tmp_path)

    assert parquet.read_table(tmp_path).num_rows == len(past.checks)


def test_the_session_of_an_export_on_all_processors_has_them_all(database: str) -> None:
    with connections.connect(address.conninfo(entry(database))) as connection:
        connections.bind(connection)

        assert os.sched_getaffinity(connection.info.backend_pid) == ALL


def test_only_a_session_without_a_pooler_between_stays_on_the_processors_of_the_export(database: str) -> None:
    with DatabaseProxy(database) as proxy:
        assert bound_by_a_process(proxy.url) == str(sorted(ALL))
    assert bound_by_a_process(database) == str(sorted(LAST))


def test_no_session_of_an_export_has_workers_on_other_processors(database: str) -> None:
    with connections.connect(address.conninfo(entry(database))) as connection:
        assert connection.execute("SHOW max_parallel_workers_per_gather").fetchall() == [("0",)]
