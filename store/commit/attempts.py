"""Why a stepwise batch is done over, how many times, and what is answered at last."""

import structlog
from psycopg import errors as pg

from store.commit.batch import Overtaken
from store.commit.pending import Pending
from store.commit.silence import ENDED
from store.db import connections
from store.errors import Refusal, SystemBusy

logger = structlog.stdlib.get_logger(__name__)

# Another process got in between (the same id, the same locks, a commit between two reads): nothing is wrong with the
# batch, it is done over. Or the session was ended before the commit, by an administrator or as this process stopped.
BETWEEN = (pg.UniqueViolation, pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable)
DONE_OVER = (Overtaken, *BETWEEN, *ENDED)
MAX_ATTEMPTS = 4
# Of one operation by itself; while it meets a lock of another session it has the time of `locked`.
MAX_ATTEMPTS_ALONE = 16


def answer(pending: Pending, problem: Exception) -> Exception:
    """What the caller of one operation is answered that was not written for this problem."""
    if isinstance(problem, pg.LockNotAvailable):
        return connections.locked(pending.holders)
    if isinstance(problem, ENDED):
        return SystemBusy(
            "The database ended the session of this write again and again, as where a process gets no processor: "
            "nothing was stored, try again."
        )
    if isinstance(problem, DONE_OVER):
        return SystemBusy("Others write the same thing over and over: nothing was stored, try again.")
    if not isinstance(problem, Refusal):
        logger.error("an operation could not be written", operation=type(pending.operation).__name__, exc_info=problem)
    return problem
