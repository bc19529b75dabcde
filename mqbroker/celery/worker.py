"""The worker process: `python -m mqbroker.celery.worker` runs tasks until a signal.

Celery's own command line, `celery worker`, imports its other commands and a shell first: a fifth of the start.
"""

import gc
import sys

from mqbroker.celery.app import app

THREADS = 8


def main() -> None:
    """Runs tasks until a signal, and exits with the worker's status, or with what it refused to start for."""
    # What a start imports stays: going through it again and again takes 8 % of the start. `app.start` enables it.
    gc.disable()
    # Workers do not speak to each other: what is due is a row, and any of them may claim it.
    worker = app.Worker(
        pool_cls="threads",
        concurrency=THREADS,
        loglevel="WARNING",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    sys.exit(worker.exitcode)


if __name__ == "__main__":
    main()
