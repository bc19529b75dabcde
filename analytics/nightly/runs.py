"""The nightly runs as PostgreSQL keeps them: one per day, claimed by one worker, run by one process."""

import subprocess
import sys
import threading
from importlib.util import find_spec

import structlog
from django.conf import settings

from analytics.rows import Claimed, Nights
from store.db import connections, sync
from store.db.statements import Statement
from store.process import runtime

CLAIM_NIGHTLY = Statement(__file__, "claim_nightly", Claimed)
END_NIGHTLY = Statement(__file__, "end_nightly")
TAKE_NIGHTLY = Statement(__file__, "take_nightly", one=bool)
FIND_NIGHTLY = Statement(__file__, "find_nightly", Nights)

# The advisory lock of the nightly run. While a session holds it, no other run is started.
LOCK = 0x6D71_6E69_6768
# A run is started, and repeated after a failure, for this many hours after it was due; then the next night follows.
HOURS = 6
MAX_TRIES = 3
# A process that was started takes the lock within this time.
START_SECONDS = 60


def claim() -> dict[str, object]:
    """The parameters of CLAIM_NIGHTLY."""
    return {
        "at": settings.EXPORT_NIGHTLY_AT,
        "hours": HOURS,
        "key": LOCK,
        "max_tries": MAX_TRIES,
        "start_seconds": START_SECONDS,
    }


def latest() -> Nights | None:
    """The state of the nightly runs, for the console and metrics; None if no nightly export is configured."""
    if not settings.EXPORT_NIGHTLY_TO:
        return None
    [found] = sync.read(FIND_NIGHTLY, {"at": settings.EXPORT_NIGHTLY_AT})
    return found


logger = structlog.stdlib.get_logger(__name__)


class Complaint:
    """Remembers whether this process has already logged that it cannot export."""

    def __init__(self) -> None:
        self.said = False


async def begin_due() -> None:
    """Starts the nightly run if it is due and none is running. Raises SystemBusy when the database is away."""
    if not settings.EXPORT_NIGHTLY_TO:
        return
    if find_spec("pyspark") is None:
        _complain()
        return
    for claimed in await connections.read_control(CLAIM_NIGHTLY, claim()):
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
