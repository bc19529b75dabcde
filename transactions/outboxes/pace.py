"""The pace of a drain: a lone row is taken at once, and rows that keep coming are taken some milliseconds at a time."""

import asyncio
import time

from transactions.outboxes.rows import Turn

# The least time between the starts of two turns: a turn costs the same for one row and for all rows of this time.
PAUSE_SECONDS = 0.005
# After a turn with at least this number of rows the drain stays awake: it looks every PAUSE_SECONDS, and producers do
# not notify. It falls asleep after a turn of fewer than LEAST_ROWS.
BUSY_ROWS = 4
LEAST_ROWS = 2
# After an empty look without a notice the drain multiplies its wait for the next look by this factor.
LONGER = 4.0


class Pace:
    """Decides when the next turn of one drain begins."""

    def __init__(self) -> None:
        self._began_at = -PAUSE_SECONDS
        self._nap_seconds = PAUSE_SECONDS

    async def begin(self) -> None:
        """Waits for the rest of PAUSE_SECONDS since the last turn began."""
        left = self._began_at + PAUSE_SECONDS - time.monotonic()
        if left > 0:
            await asyncio.sleep(left)
        self._began_at = time.monotonic()

    def sleeps_after(self, turn: Turn, rows: int) -> bool:
        """Whether producers shall notify after a turn that has taken this number of rows."""
        return rows < (BUSY_ROWS if turn.asleep else LEAST_ROWS)

    def wait_seconds(self, turn: Turn, rows: int, *, hears: bool, poll_seconds: float) -> float:
        """The seconds to wait for a notice after a turn that left no row. If producers already had to notify before the
        turn, and the listener hears them, a notice announces each later commit. Otherwise the drain looks again soon,
        and then less and less often.
        """
        falls_asleep = not turn.asleep and self.sleeps_after(turn, rows)
        if falls_asleep or (rows and not hears):
            self._nap_seconds = PAUSE_SECONDS
        elif rows and not turn.asleep:
            return 0.0
        else:
            self._nap_seconds = min(self._nap_seconds * LONGER, poll_seconds)
        return self._nap_seconds
