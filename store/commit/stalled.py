"""Ends transactions whose process was stopped in the middle of sending them: their locks would stop other processes."""

from typing import NamedTuple

import structlog

from store.db import connections
from store.db.pipeline import TRANSACTION_SECONDS
from store.db.statements import Statement

logger = structlog.stdlib.get_logger(__name__)

# Of one look; what is left is ended by the next one.
MAX_SESSIONS = 100


class Ended(NamedTuple):
    """The session of a writer, and whether it could be ended."""

    pid: int
    is_ended: bool


END_STALLED_WRITERS = Statement(__file__, "end_stalled_writers", Ended)


async def end(seconds: float = TRANSACTION_SECONDS) -> None:
    """Ends the writers that have waited for the rest of a transaction for so long, as PostgreSQL 17 does by itself."""
    for session in await connections.read(END_STALLED_WRITERS, {"seconds": seconds, "max_rows": MAX_SESSIONS}):
        logger.warning(
            "a writer was stopped in the middle of a transaction", session=session.pid, ended=session.is_ended
        )
