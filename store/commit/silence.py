"""How long the server lets a stepwise batch wait for its process between two steps, before it ends the session.

A process that is stopped (SIGSTOP, a frozen machine) keeps the locks of its batch for that long, and what needs them
waits. One that only waits for a processor loses its batch, too, and would lose it again on the same processor: behind
an ended batch the next one gets twice the time, up to MOST_MS.
"""

import contextlib
from collections.abc import Iterator

from psycopg import errors as pg

from store.commit import stalled
from store.segments.log import SILENCE_MS

# Below LOCKED_SECONDS of those that wait for its locks, with an attempt of theirs: none is refused for it.
MOST_MS = 2000
# An administrator may have ended the session as well: both look alike.
ENDED = (pg.AdminShutdown, pg.IdleInTransactionSessionTimeout, stalled.Ended)


class Silence:
    """The limit of one writer's next batch."""

    def __init__(self) -> None:
        self.limit_ms = SILENCE_MS

    @contextlib.contextmanager
    def heeded(self) -> Iterator[None]:
        """An attempt to write a batch: it doubles the limit of the next one where its session is ended, and sets that
        back where it is committed."""
        try:
            yield
        except ENDED:
            self.limit_ms = min(2 * self.limit_ms, MOST_MS)
            raise
        self.limit_ms = SILENCE_MS
