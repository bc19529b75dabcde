"""Keeps the classes that Java reads for Spark, for its next starts: `python -m analytics.management.keep_classes`.

It takes some 30 s of CPU, and 180 MB of disk. `./mq export`, `report` and `test` do it once in each environment.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from analytics import java, session
from analytics.java import BUNDLED_JAVA, Java

# Of a Java that has read all that an export needs.
END_SECONDS = 120


def keep(runtime: Java) -> None:
    """Makes the archive of this Java. Nothing is kept where Java cannot do so."""
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
        end()
        if draft.exists():
            draft.rename(java.archive(runtime))


def work(spark: SparkSession, target: str) -> None:
    """What exports and reports ask of Spark: files by day, counts, joins, percentiles."""
    rows = spark.range(100).select("id", (f.col("id") % 3).alias("day"), f.col("id").cast("string").alias("text"))
    rows.withColumn("at", f.timestamp_seconds("id")).write.partitionBy("day").parquet(target)
    read = spark.read.parquet(target)
    counts = read.groupBy("day").agg(f.count("*"), f.max("at"), f.expr("percentile(id, array(0.5, 0.99))"))
    counts.join(read.select("day").distinct(), "day").orderBy("day").collect()
    spark.createDataFrame([(1, "one")], "id long, text string").join(read, "id", "left").collect()


def end() -> None:
    """Ends Java, which keeps the classes at its end, and waits for that."""
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    process: subprocess.Popen[bytes] = gateway.proc
    assert process.stdin is not None
    process.stdin.close()
    process.wait(END_SECONDS)


if __name__ == "__main__":
    os.nice(19)
    keep(java.find(java.candidates(os.environ)))
    sys.exit(0)
