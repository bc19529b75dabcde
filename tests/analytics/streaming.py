"""Streams of the data source to files, in the session of the tests or in a process of its own, which may be killed.

`python -m tests.analytics.streaming URL FOLDER name=value …` never ends by itself; the words are options of the source.
"""

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from analytics import java, session
from analytics.session import Cluster
from analytics.stream import register


def frame(spark: SparkSession, url: str, **options: str | int) -> DataFrame:
    """A table as a stream."""
    return spark.readStream.format("mqbroker").options(url=url, **options).load()


def to_files(frame: DataFrame, folder: Path, *, ends: bool = True) -> None:
    """Streams from where the checkpoint in the folder stands, until all is read or for ever."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    (writer.trigger(availableNow=True) if ends else writer).start(str(folder / "files")).awaitTermination()


def main(url: str, folder: Path, **options: str) -> None:
    """Streams for ever."""
    runtime, scratch = java.find(java.candidates(os.environ)), folder / f"scratch-{os.getpid()}"
    with session.opened(runtime, None, scratch, brief=True, cluster=Cluster(cores=1)) as spark:
        register(spark)
        to_files(frame(spark, url, **options), folder, ends=False)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), **dict(word.split("=", 1) for word in sys.argv[3:]))
