"""The progress of an outbox in one process: the numbers to be written, the size of turns, and the wait for a turn."""

import time
from collections.abc import Sequence

import structlog

from store.db import connections
from store.db.statements import Statement
from store.errors import Refusal
from transactions.outboxes.closed import Closed
from transactions.outboxes.rows import Listed, Turn, Waits

logger = structlog.stdlib.get_logger(__name__)

NOTE_OUTBOX = Statement(__file__, "note_outbox")

MAX_ROWS = 500
# The size of turns after a failure; it falls with each failure. So a slow machine also sends some rows, and a row that
# causes failures is soon alone in its turn.
FEW_ROWS = 32
FEWER = 8
NOTE_SECONDS = 1.0
LOOK_SECONDS = 5.0
# This time is longer than the time after which a source ends the session of a process that is frozen in its turn.
IN_VAIN_SECONDS = 30.0


class TurnTaken(Refusal):
    """Rows wait, but another session has the turn and does nothing with it."""


class Size:
    """How many rows a turn takes. All of them are sent, or none."""

    def __init__(self) -> None:
        self.rows = MAX_ROWS

    def failed(self) -> None:
        """Notes that a turn has failed: the next turn takes fewer rows."""
        self.rows = min(FEW_ROWS, max(self.rows // FEWER, 1))

    def succeeded(self) -> None:
        """Notes that a turn has succeeded: the next turn may take twice as many rows."""
        self.rows = min(self.rows * 2, MAX_ROWS)


class Queueing:
    """The time for which this process has waited for the turn while no process took the first row."""

    def __init__(self) -> None:
        self._first: tuple[int | None, int | None] | None = None
        self._since = 0.0

    @property
    def counts(self) -> bool:
        """Whether this process counts the waiting rows. While another process drains, that process counts them."""
        return self._first is None or time.monotonic() - self._since >= LOOK_SECONDS

    def got(self) -> None:
        """Notes that this process has had the turn, or no row waited."""
        self._first = None

    def wants(self, first: Turn) -> float:
        """Notes that another process has the turn. Returns how long the same row has been the first, in seconds."""
        place = first.slot, first.seq
        if place != self._first:
            self._first, self._since = place, time.monotonic()
        return time.monotonic() - self._since


def turn_taken(holders: Sequence[str], seconds: float) -> TurnTaken:
    """The refusal for an outbox whose turn another session keeps without using it."""
    return TurnTaken(
        "Rows wait in the outbox, and no process of the broker could lock the row of mqbroker_outbox_state "
        f"for {seconds:.0f} s: another session has locked it ({'; '.join(holders) or 'see pg_locks'})."
    )


class Progress:
    """The numbers and failures of an outbox that this process writes into its row."""

    def __init__(self, listed: Listed, closed: Closed) -> None:
        self._closed = closed
        self._of = {"id": listed.id, "url": listed.url}
        self._drained = self._refused = 0
        self._waits: Waits | None = None
        self._noted_at = self._looked_at = -LOOK_SECONDS

    def add(self, drained: int, refused: int) -> None:
        """Counts the drained rows of a turn that is committed."""
        self._drained += drained
        self._refused += refused

    def look_is_due(self) -> bool:
        """Whether the waiting rows should be counted again."""
        return time.monotonic() - self._looked_at >= LOOK_SECONDS

    def saw(self, waits: Waits) -> None:
        """Keeps the result of a look at the waiting rows for the next note."""
        self._looked_at = time.monotonic()
        self._waits = waits

    async def note(self, *, stands_by: bool = False) -> None:
        """Writes the numbers into the outbox's row, at most every NOTE_SECONDS. `stands_by`: this process does not have
        the turn.
        """
        is_news = self._drained or self._refused or self._waits
        if is_news and time.monotonic() - self._noted_at >= NOTE_SECONDS:
            await self._write(self._closed.reason, stands_by=stands_by)

    async def failed(self, reason: str) -> None:
        """Writes why the outbox cannot be drained; while the broker's database is away, only into the log."""
        try:
            await self._write(reason)
        except Refusal as refusal:
            logger.warning("an outbox's failure could not be noted", reason=refusal.detail)

    async def _write(self, failure: str | None, *, stands_by: bool = False) -> None:
        self._noted_at = time.monotonic()
        waiting, waited_seconds, outdated = self._waits or (None, None, None)
        counted = {"drained": self._drained, "refused": self._refused, "waiting": waiting, "outdated": outdated}
        noted = {**self._of, **counted, "failure": failure, "waited_seconds": waited_seconds, "stands_by": stands_by}
        await connections.read_control(NOTE_OUTBOX, noted)
        self._drained = self._refused = 0
        self._waits = None
