"""A stream of the messages to files in a process of its own, which may be killed.

`python -m tests.analytics.streaming URL FOLDER` never ends by itself; a word `once` ends it when all is read. Words
such as `table=committed` are options of the source.
"""

import os
import sys
from pathlib import Path

from analytics import java, session
from analytics.stream import register

# Some slices a batch, and not one for each message that came while the processes started.
ROWS_PER_SLICE = 500


def main(url: str, folder: Path, *, once: bool, table: str = "messages", **options: str) -> None:
    """Streams to the files from where the checkpoint stands."""
    scratch = folder / f"scratch-{os.getpid()}"
    with session.opened(java.find(java.candidates(os.environ)), None, scratch, brief=True) as spark:
        register(spark)
        source = spark.readStream.format("mqbroker").option("url", url).option("table", table)
        frame = source.option("rows_per_slice", ROWS_PER_SLICE).options(**options).load()
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
        (writer.trigger(availableNow=True) if once else writer).start(str(folder / "files")).awaitTermination()


if __name__ == "__main__":
    words = sys.argv[3:]
    named = dict(word.split("=", 1) for word in words if "=" in word)
    main(sys.argv[1], Path(sys.argv[2]), once="once" in words, **named)
