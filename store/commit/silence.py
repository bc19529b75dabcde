"""How long the server waits for the next step of a stepwise batch before it ends the session.

A process that is stopped (SIGSTOP, a frozen machine) keeps the locks of its batch for that time, and other sessions
wait for the locks. A process that only waits for a processor also loses its batch, and would lose the repeated batch,
too: after an ended batch the next batch gets twice the time, up to MOST_MS.
"""

import contextlib
from collections.abc import Iterator

from psycopg import errors as pg

from store.commit import stalled
from store.segments.log import SILENCE_MS

# Below LOCKED_SECONDS, even with one more attempt: operations that wait for the locks of this batch are then not
# refused.
MOST_MS = 2000
# The server ended the session for its silence, or an administrator ended it: the error is the same.
ENDED = (pg.AdminShutdown, pg.IdleInTransactionSessionTimeout, stalled.Ended)


class Silence:
    """The limit of silence, in ms, for the next batch of one writer."""

    def __init__(self) -> None:
        self.limit_ms = SILENCE_MS

    @contextlib.contextmanager
    def heeded(self) -> Iterator[None]:
        """Wraps an attempt to write a batch: doubles the limit if the session is ended, resets it after the commit."""
        try:
            yield
        except ENDED:
            self.limit_ms = min(2 * self.limit_ms, MOST_MS)
            raise
        self.limit_ms = SILENCE_MS
