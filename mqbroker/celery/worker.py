"""The worker process: `python -m mqbroker.celery.worker` runs tasks until a signal.

Celery's own command line, `celery worker`, first imports its other commands and a shell: a fifth of the start time.
"""

import gc
import sys

from mqbroker.celery.app import app

THREADS = 8


def main() -> None:
    """Runs tasks until a signal. Exits with the worker's status, or with the reason why it refused to start."""
    # Objects of the start stay in memory: collecting them repeatedly takes 8 % of the start. `app.start` turns
    # collection on.
    gc.disable()
    # Workers need not know of each other: due work is a row, which any worker may claim.
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
