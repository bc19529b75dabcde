"""The nights' runs as PostgreSQL keeps them: one per day, claimed by one worker, run by one process."""

from django.conf import settings

from analytics.rows import Claimed, Nights
from store.db import sync
from store.db.statements import Statement

CLAIM_NIGHTLY = Statement(__file__, "claim_nightly", Claimed)
END_NIGHTLY = Statement(__file__, "end_nightly")
TAKE_NIGHTLY = Statement(__file__, "take_nightly", one=bool)
FIND_NIGHTLY = Statement(__file__, "find_nightly", Nights)

# The session that holds this advisory lock runs the night's export; while one does, no other is started.
LOCK = 0x6D71_6E69_6768
# For so long after its time a run is begun, and begun again after a failure; then it is left to the next night.
HOURS = 6
MAX_TRIES = 3
# A process that was started has the lock within this time.
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
    """The nights' runs, for the console and metrics; None where no nightly export is set."""
    if not settings.EXPORT_NIGHTLY_TO:
        return None
    [found] = sync.read(FIND_NIGHTLY, {"at": settings.EXPORT_NIGHTLY_AT})
    return found
