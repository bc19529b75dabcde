"""Stepwise batches that are repeated: the reasons, the number of attempts, and the answer after the last attempt."""

import structlog
from psycopg import errors as pg

from store.commit.batch import Overtaken
from store.commit.pending import Pending
from store.commit.silence import ENDED
from store.db import connections
from store.errors import Refusal, SystemBusy

logger = structlog.stdlib.get_logger(__name__)

# These problems are not caused by the batch itself, so the batch is repeated. Another process interfered: it used the
# same id or the same locks, or committed between two reads. Or the session was ended before the commit, by an
# administrator or because this process had stopped.
BETWEEN = (pg.UniqueViolation, pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable)
DONE_OVER = (Overtaken, *BETWEEN, *ENDED)
MAX_ATTEMPTS = 4
# The most attempts for a single operation. If it meets a lock of another session, `locked` limits the time.
MAX_ATTEMPTS_ALONE = 16


def answer(pending: Pending, problem: Exception) -> Exception:
    """The exception for the caller of an operation that this problem has prevented from being written."""
    if isinstance(problem, pg.LockNotAvailable):
        return connections.locked(pending.holders)
    if isinstance(problem, ENDED):
        return SystemBusy(
            "The database ended the session of this write several times, because this process was too slow "
            "between two steps: nothing was stored, try again."
        )
    if isinstance(problem, DONE_OVER):
        return SystemBusy(
            "Other requests wrote the same rows at the same time in every attempt: nothing was stored, try again."
        )
    if not isinstance(problem, Refusal):
        logger.error("an operation could not be written", operation=type(pending.operation).__name__, exc_info=problem)
    return problem
