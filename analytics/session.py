"""Opens a Spark session for one job: local, quiet, in UTC, with bounded memory."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from analytics.errors import ExportFailed
from analytics.java import Java

MEMORY = "1g"
# A task holds some 100 MiB of rows on their way; more tasks at once would not fit into the memory.
MAX_CORES = 4
LOGGING = Path(__file__).with_name("log4j2.properties")
ROOT = Path(__file__).resolve().parents[1]

JAVA_OPTIONS = f"-Duser.timezone=UTC -Dlog4j2.configurationFile={LOGGING.as_uri()}"
# The quick compiler only. Seconds of CPU for an export of nothing: 11 instead of 25; of 200,000 messages:
# 21 instead of 36; for each further 200,000 of the same run: 9.5 instead of 8.
BRIEF_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

SETTINGS = {
    "spark.app.name": "mqbroker-export",
    "spark.driver.memory": MEMORY,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Parquet looks at its buffers after 100 rows at first: of 4 MiB each, those are all the memory there is.
    "spark.hadoop.parquet.block.size": str(32 * 1024 * 1024),
    "spark.hadoop.parquet.block.size.row.check.min": "4",
    "spark.hadoop.parquet.page.size.row.check.min": "4",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


@contextmanager
def opened(runtime: Java, jdbc: Path | None, scratch: Path, *, brief: bool) -> Iterator[SparkSession]:
    """A session on this Java, with this JDBC driver where frames are read by it; `brief` for little work.

    What it spills goes to the folder `scratch`. Raises ExportFailed when Spark does not start.
    """
    settings = {
        **SETTINGS,
        **({"spark.jars": str(jdbc)} if jdbc else {}),
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {BRIEF_OPTIONS}" if brief else JAVA_OPTIONS,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch),
    }
    _silence_py4j()
    places = {
        "JAVA_HOME": str(runtime.home(scratch)),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        # Workers run on this Python, which has pyarrow and the driver, and not on the first of the PATH.
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }
    with _interruptible(), environment(places):
        session = _start(settings)
    try:
        yield session
    except KeyboardInterrupt:
        # The interrupted call was waiting for Java, which takes no other call then; it ends with this process.
        raise
    except BaseException:
        session.stop()
        raise
    session.stop()


def _start(settings: Mapping[str, str]) -> SparkSession:
    cores = min(os.cpu_count() or 1, MAX_CORES)
    try:
        return SparkSession.builder.master(f"local[{cores}]").config(map=dict(settings)).getOrCreate()
    except PySparkRuntimeError as problem:
        raise ExportFailed("Spark did not start: the lines above say why.") from problem


def _silence_py4j() -> None:
    """A failure between Python and Java is raised; py4j also logs its trace, sometimes by the root logger."""
    logging.getLogger("py4j").propagate = False
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


@contextmanager
def _interruptible() -> Iterator[None]:
    """Keeps the handler of Ctrl-C: Spark's would cancel jobs over the connection that waits for one of them."""
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
    """Sets these variables while Spark's scripts start, and unsets those that name another Spark."""
    ours = {**changes, "SPARK_CONF_DIR": str(LOGGING.parent)}
    hidden = {
        name: os.environ.pop(name) for name in ("SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", *ours) if name in os.environ
    }
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            del os.environ[name]
        os.environ.update(hidden)
