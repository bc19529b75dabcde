"""Starts a nightly run from a worker, in a separate process that outlives the worker."""

import subprocess
import sys
import threading
from importlib.util import find_spec

import structlog
from django.conf import settings

from analytics.nightly import runs
from store.db import connections
from store.process import runtime

logger = structlog.stdlib.get_logger(__name__)


class Complaint:
    """Remembers whether this process has already logged that it cannot export."""

    def __init__(self) -> None:
        self.said = False


async def run() -> None:
    """Starts the nightly run if it is due and none is running. Raises SystemBusy when the database is away."""
    if not settings.EXPORT_NIGHTLY_TO:
        return
    if find_spec("pyspark") is None:
        _complain()
        return
    for claimed in await connections.read_control(runs.CLAIM_NIGHTLY, runs.claim()):
        process = start(str(claimed.day))
        logger.info("the nightly export is started", day=str(claimed.day), tries=claimed.tries, process=process.pid)


def start(day: str) -> subprocess.Popen[bytes]:
    """Starts the process that runs a day's export, in its own session, so that it survives the end of this worker."""
    process = subprocess.Popen(
        [sys.executable, str(settings.BASE_DIR / "manage.py"), "nightly", day],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    # Waits for the process only so that it does not stay in the system's table as a zombie.
    threading.Thread(target=process.wait, name="nightly export", daemon=True).start()
    return process


def _complain() -> None:
    complaint = runtime.control(Complaint)
    if not complaint.said:
        complaint.said = True
        logger.error(
            "EXPORT_NIGHTLY_TO is set and PySpark is not installed, so this worker starts no nightly export: install "
            "the extra `analytics` (`pip install mqbroker[analytics]`)"
        )
