"""A stream of the messages to files in a process of its own, which may be killed.

`python -m tests.analytics.streaming URL FOLDER` never ends by itself; a last word `once` ends it when all is read.
"""

import os
import sys
from pathlib import Path

from analytics import java, session
from analytics.stream import BrokerSource

# Some slices a batch, and not one for each message that came while the processes started.
ROWS_PER_SLICE = 500


def main(url: str, folder: Path, *, once: bool) -> None:
    """Streams to the files from where the checkpoint stands."""
    scratch = folder / f"scratch-{os.getpid()}"
    with session.opened(java.find(java.candidates(os.environ)), None, scratch, brief=True) as spark:
        spark.dataSource.register(BrokerSource)
        frame = spark.readStream.format("mqbroker").option("url", url).option("rows_per_slice", ROWS_PER_SLICE).load()
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
        (writer.trigger(availableNow=True) if once else writer).start(str(folder / "files")).awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), once=sys.argv[3:] == ["once"])
