"""Opens a Spark session, or joins an existing one, that reads the database and reaches the export's target."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from pyspark.sql import SparkSession

from analytics import connections, java, session
from analytics.files.hadoop import Hadoop, Place
from analytics.files.place import Local
from analytics.readers import address, counts, driver
from analytics.readers.adbc import AdbcSource
from analytics.readers.failures import failures_as_ours
from analytics.readers.jdbc import JdbcSource
from analytics.session import Cluster
from analytics.submit import is_submitted

# From this number of messages on, Java's optimizing compiler saves more CPU than it costs.
BRIEF_MESSAGES = 1_000_000

Reader = Literal["jdbc", "source"]
# A source that reads by ADBC, or one that reads by JDBC. Both return frames with the same rows.
Source = AdbcSource | JdbcSource
# A folder of this machine, or the URL of a folder.
Target = Path | str


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of an export: whether to read by ADBC (`source`) or by JDBC (`jdbc`), and how to write.

    `jdbc_jar` is the path of a JDBC driver, `heaviest` the usual maximum size of a body in bytes. With `compact` small
    files are merged. The broker notes the export under the name `noted_as`. `format` is the format of tables that are
    kept beside the files.
    """

    reader: Reader
    jdbc_jar: str
    heaviest: int
    noted_as: str
    compact: bool = False
    cluster: Cluster = session.HERE
    format: str = "parquet"
    # A function that the export calls once a second with a line about the progress.
    say: Callable[[str], None] | None = None

    @property
    def writes_in_workers(self) -> bool:
        """Whether Java only starts tasks, because Python workers on this machine read by ADBC and write the files."""
        return self.reader == "source" and not self.cluster.master


@contextmanager
def opened(
    conninfo: str, environ: Mapping[str, str], wishes: Wishes, scratch: Path, *, idle: bool = False
) -> Iterator[SparkSession]:
    """A Spark session that can read the database: a new one, or the one that spark-submit has opened.

    With `idle`, Java processes no rows.
    """
    by_jdbc = wishes.reader == "jdbc"
    jar, brief = None, idle
    if not is_submitted(environ):
        # Checks that can refuse come first, because Spark needs seconds to start.
        jar = driver.find(wishes.jdbc_jar) if by_jdbc else None
        with connections.connect(conninfo) as connection:
            if by_jdbc:
                address.of(connection)
            brief = idle or counts.estimate(connection) < BRIEF_MESSAGES
        if by_jdbc and jar is None:
            jar = driver.fetch(java.find(java.candidates(environ)), scratch / "driver")
    with of_files(environ, scratch / "spark", brief=brief, cluster=wishes.cluster, jar=jar) as spark:
        yield spark


def source(spark: SparkSession, conninfo: str, wishes: Wishes) -> Source:
    """The source that reads a database, by ADBC or JDBC as requested."""
    return jdbc(spark, conninfo, wishes.heaviest) if wishes.reader == "jdbc" else AdbcSource(spark, conninfo)


@contextmanager
def reached(target: Target, environ: Mapping[str, str], cluster: Cluster = session.HERE) -> Iterator[Place]:
    """The place of an export. A place behind a URL is reached by Spark's Java. Raises ExportFailed."""
    if isinstance(target, Path):
        yield Local(target)
        return
    with (
        failures_as_ours(),
        TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        of_files(environ, Path(scratch), brief=True, cluster=cluster) as spark,
    ):
        yield Hadoop(spark, target)


@contextmanager
def of_files(
    environ: Mapping[str, str], scratch: Path, *, brief: bool, cluster: Cluster = session.HERE, jar: Path | None = None
) -> Iterator[SparkSession]:
    """A new Spark session, with a JDBC driver if it gets one, or the one that spark-submit has opened.

    `brief` is for little work.
    """
    if is_submitted(environ):
        with session.joined(scratch) as spark:
            yield spark
        return
    runtime = java.find(java.candidates(environ))
    with session.opened(runtime, jar, scratch, brief=brief, cluster=cluster) as spark:
        yield spark


def jdbc(spark: SparkSession, conninfo: str, heaviest: int) -> JdbcSource:
    """The database of a libpq connection string as a source for JDBC. Raises SocketRefused."""
    with connections.connect(conninfo) as connection:
        return JdbcSource(spark, address.of(connection), heaviest)
