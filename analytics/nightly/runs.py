"""The nightly runs as PostgreSQL keeps them: one per day, claimed by one worker, run by one process."""

from django.conf import settings

from analytics.rows import Claimed, Nights
from store.db import sync
from store.db.statements import Statement

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
