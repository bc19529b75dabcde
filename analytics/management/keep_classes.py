"""Writes an archive of the Java classes that Spark loads, so that later starts of Spark are shorter.

Run it with `python -m analytics.management.keep_classes`. Without the archive Java reads and links 20,000 classes at
each start of Spark: 6 s of an export of 10 s. Writing it takes about 30 s of CPU and 180 MB of disk. `./mq export`,
`report` and `test` write it once in each environment, and again after a failure. The exit code is 0 if the archive was
written. Java always ends together with this program.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psutil
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from analytics import java, session
from analytics.errors import ExportFailed
from analytics.java import BUNDLED_JAVA, Java
from analytics.management.background import START_NICENESS

# The time for a Java that has read all classes of an export, on a busy machine.
END_SECONDS = 600.0
SAID_SECONDS = 20.0


class NotKept(Exception):
    """Java did not write the archive; the text is the reason."""


def keep(runtime: Java, end_seconds: float = END_SECONDS) -> None:
    """Writes the class archive for this Java. Raises NotKept, or ExportFailed if Spark does not start."""
    java.CLASSES.mkdir(exist_ok=True)
    if runtime.executable == BUNDLED_JAVA:
        # The wheel of Java lacks the archive of Java's own classes, on which the archive of Spark's classes is based.
        subprocess.run([runtime.executable, "-Xshare:dump"], capture_output=True)
    with tempfile.TemporaryDirectory(dir=java.CLASSES) as folder:
        scratch = Path(folder)
        draft = scratch / "draft.jsa"
        options = java.keeping(runtime, draft)
        with session.opened(runtime, None, scratch, brief=True, class_options=options) as spark:
            work(spark, str(scratch / "files"))
        end(end_seconds)
        if not draft.exists():
            raise NotKept(f"{runtime.executable} has ended and kept none")
        draft.rename(java.archive(runtime))


def work(spark: SparkSession, target: str) -> None:
    """Runs the parts of Spark that exports and reports use: files by day, counts, joins, percentiles."""
    rows = spark.range(100).select("id", (f.col("id") % 3).alias("day"), f.col("id").cast("string").alias("text"))
    rows.withColumn("at", f.timestamp_seconds("id")).write.partitionBy("day").parquet(target)
    read = spark.read.parquet(target)
    counts = read.groupBy("day").agg(f.count("*"), f.max("at"), f.expr("percentile(id, array(0.5, 0.99))"))
    counts.join(read.select("day").distinct(), "day").orderBy("day").collect()
    spark.createDataFrame([(1, "one")], "id long, text string").join(read, "id", "left").collect()


def end(seconds: float) -> None:
    """Stops Java, which writes the archive when it ends, and waits for the end. Raises NotKept."""
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    process: subprocess.Popen[bytes] = gateway.proc
    assert process.stdin is not None
    process.stdin.close()
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(SAID_SECONDS, left))
            return
        if left > SAID_SECONDS:
            print("mq: Java still keeps them: the machine is busy.", file=sys.stderr, flush=True)
    raise NotKept(f"Java has not ended within {seconds:g} s")


def stop(number: int, frame: FrameType | None) -> NoReturn:
    """Handles a signal: ends this program, and Java with it, with a shell's exit status for the signal."""
    raise SystemExit(128 + number)


def main(words: list[str]) -> int:
    """Returns 0 if the archive was written. The only argument is how many seconds Java may take to end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    os.nice(START_NICENESS)
    try:
        keep(java.find(java.candidates(os.environ)), *map(float, words))
    except (NotKept, ExportFailed) as problem:
        print(f"mq: Java keeps no classes of Spark: {problem}. The next start tries it again.", file=sys.stderr)
        return 1
    finally:
        for left in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                left.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
