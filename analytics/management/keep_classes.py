"""Writes an archive of the Java classes that Spark loads, so that Spark's next starts are shorter.

`python -m analytics.management.keep_classes` does it.

Without kept classes Java reads and links 20,000 classes at each start of Spark, 6 s of an export of 10 s. To keep them
takes some 30 s of CPU, and 180 MB of disk. `./mq export`, `report` and `test` do it once in each environment, and again
where it has failed. Its exit code is 0 where the classes are kept. Java ends with it, however it ends.
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

# Of a Java that has read all that an export needs; a busy machine gives it few of them.
END_SECONDS = 600.0
SAID_SECONDS = 20.0


class NotKept(Exception):
    """Java has kept no classes: the reason."""


def keep(runtime: Java, end_seconds: float = END_SECONDS) -> None:
    """Makes the archive of this Java. Raises NotKept, or ExportFailed where Spark does not start."""
    java.CLASSES.mkdir(exist_ok=True)
    if runtime.executable == BUNDLED_JAVA:
        # The wheel leaves out the archive of Java's own classes, which the other one is based on.
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
    """What exports and reports ask of Spark: files by day, counts, joins, percentiles."""
    rows = spark.range(100).select("id", (f.col("id") % 3).alias("day"), f.col("id").cast("string").alias("text"))
    rows.withColumn("at", f.timestamp_seconds("id")).write.partitionBy("day").parquet(target)
    read = spark.read.parquet(target)
    counts = read.groupBy("day").agg(f.count("*"), f.max("at"), f.expr("percentile(id, array(0.5, 0.99))"))
    counts.join(read.select("day").distinct(), "day").orderBy("day").collect()
    spark.createDataFrame([(1, "one")], "id long, text string").join(read, "id", "left").collect()


def end(seconds: float) -> None:
    """Ends Java, which keeps the classes at its end, and waits for that. Raises NotKept."""
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
    """Ends this program as a shell says it, and so Java."""
    raise SystemExit(128 + number)


def main(words: list[str]) -> int:
    """0 where the classes are kept. The one word is how many seconds Java gets to end."""
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
