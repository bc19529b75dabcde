"""Opens a Spark session for one job: with little output, in UTC, with limited memory; here or on a cluster."""

import logging
import os
import signal
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from analytics import java
from analytics.errors import ExportFailed
from analytics.java import Java

MEMORY = "1g"
# A task holds about 100 MiB of rows; more tasks at once would not fit into the memory.
MAX_CORES = 4
LOGGING = Path(__file__).with_name("log4j2.properties")
ROOT = Path(__file__).resolve().parents[1]

JAVA_OPTIONS = f"-Duser.timezone=UTC -Dlog4j2.configurationFile={LOGGING.as_uri()}"
# Java uses only its quick compiler. Seconds of CPU for an empty export: 11 instead of 25; for 200,000 messages: 21
# instead of 36; for each further 200,000 in the same run: 9.5 instead of 8.
BRIEF_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# Settings that determine the content of the files: they override the settings of the Spark that is used.
FILES = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Parquet first checks its memory after 100 rows: with bodies of 4 MiB these fill all the memory.
    "spark.hadoop.parquet.block.size": str(32 * 1024 * 1024),
    "spark.hadoop.parquet.block.size.row.check.min": "4",
    "spark.hadoop.parquet.page.size.row.check.min": "4",
    # A slice covers one or two days: with a writer for each day, Spark need not sort rows with their bodies.
    "spark.sql.maxConcurrentOutputFileWriters": "4",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
SETTINGS = {
    **FILES,
    "spark.app.name": "mqbroker-export",
    "spark.driver.memory": MEMORY,
    "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
ON_THIS_MACHINE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
# All modules that a worker imports when it reads by ADBC.
SHIPPED = ("analytics/__init__.py", "analytics/readers/__init__.py", "analytics/readers/arrow.py")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where Spark runs (the URL of its master), and settings of Spark that override ours.

    Without a master Spark runs on this machine and ignores SPARK_CONF_DIR. `cores` is the number of tasks that run at
    once on this machine; without a number, one per core, at most four.
    """

    master: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    cores: int | None = None


HERE = Cluster()


@contextmanager
def opened(
    runtime: Java,
    jdbc: Path | None,
    scratch: Path,
    *,
    brief: bool,
    cluster: Cluster = HERE,
) -> Iterator[SparkSession]:
    """Opens a session with this Java, and with this JDBC driver if frames are read by JDBC; `brief` for little work.

    Temporary files go to the folder `scratch`. Raises ExportFailed when Spark does not start.
    """
    options = [JAVA_OPTIONS, *([BRIEF_OPTIONS] if brief else [])]
    options.append(java.class_options(runtime))
    # Libraries of Java unpack files here and do not delete them.
    options.append(f'"-Djava.io.tmpdir={scratch}"')
    settings = {
        **SETTINGS,
        **({} if cluster.master else ON_THIS_MACHINE),
        "spark.driver.extraJavaOptions": " ".join(options).strip(),
        "spark.sql.warehouse.dir": str(scratch),
    }
    _silence_py4j()
    places = {
        "JAVA_HOME": str(runtime.home(scratch)),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYTHONPATH": str(ROOT),
        **_choices(cluster),
    }
    with _undivided(scratch) as local, _undivided(jdbc) as jars:
        lists = {"spark.local.dir": local, **({"spark.jars": jars} if jars else {})}
        with _interruptible(), environment(places):
            session = _start(_builder(cluster), settings | lists | dict(cluster.settings))
        with _ended(session):
            if cluster.master:
                _ship(session, scratch)
            yield session


@contextmanager
def _undivided(path: Path | None) -> Iterator[str]:
    """Yields the path, or a temporary link if the path has a comma, because Spark splits lists at commas."""
    if path is None or "," not in str(path):
        yield str(path or "")
        return
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        link = Path(folder, path.name.replace(",", "-"))
        link.symlink_to(path.absolute())
        yield str(link)


@contextmanager
def joined(scratch: Path) -> Iterator[SparkSession]:
    """The session of a program that spark-submit started, with the master, memory and jars of its command line."""
    _silence_py4j()
    with _interruptible():
        session = _start(SparkSession.builder, FILES)
    with _ended(session):
        context = session.sparkContext
        if (context.master or "").startswith("local"):
            # The workers of a local session run on this machine and also write the files, so they need more modules.
            context.environment["PYTHONPATH"] = str(ROOT)
        else:
            _ship(session, scratch)
        yield session


@contextmanager
def _ended(session: SparkSession) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        # The interrupted call still waits for Java, so Java cannot be called. Java ends with this process.
        raise
    except BaseException:
        session.stop()
        raise
    session.stop()


def _choices(cluster: Cluster) -> dict[str, str]:
    """The environment variables for the workers' Python and for Spark's settings folder. On one machine the caller's
    own variables are ignored.
    """
    # The Python of this process has pyarrow and the driver; the first Python of the PATH may lack them.
    ours = {"PYSPARK_PYTHON": sys.executable, "SPARK_CONF_DIR": str(java.NO_SETTINGS)}
    return {name: os.environ.get(name, value) if cluster.master else value for name, value in ours.items()}


def _builder(cluster: Cluster) -> SparkSession.Builder:
    cores = cluster.cores or min(os.cpu_count() or 1, MAX_CORES)
    return SparkSession.builder.master(cluster.master or f"local[{cores}]")


def _ship(session: SparkSession, scratch: Path) -> None:
    """Sends the workers the modules that they import, as `--py-files` does: their machine may lack the broker."""
    scratch.mkdir(parents=True, exist_ok=True)
    package = scratch / "mqbroker-reader.zip"
    with zipfile.ZipFile(package, "w") as opened:
        for path in SHIPPED:
            opened.write(ROOT / path, path)
    session.sparkContext.addPyFile(str(package))


def _start(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    try:
        return builder.config(map=dict(settings)).getOrCreate()
    except PySparkRuntimeError as problem:
        raise ExportFailed("Spark did not start: the lines above say why.") from problem


def _silence_py4j() -> None:
    """Stops py4j from logging: it logs the trace of each failure between Python and Java, which is raised anyway."""
    logging.getLogger("py4j").propagate = False
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


@contextmanager
def _interruptible() -> Iterator[None]:
    """Keeps Python's handler of Ctrl-C: Spark's handler would cancel jobs over a connection that is busy."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, ours)


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Sets these environment variables while Spark's scripts start, and removes variables that name another Spark."""
    hidden = {
        name: os.environ.pop(name) for name in ("SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", *changes) if name in os.environ
    }
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in changes:
            del os.environ[name]
        os.environ.update(hidden)
