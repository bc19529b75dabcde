"""The pace of a drain: a lone row is taken at once, and rows that keep coming are taken some milliseconds at a time."""

import asyncio
import time

from transactions.outboxes.rows import Turn

# The least time between the beginnings of two turns: a turn costs the same for one row and for what this time brings.
PAUSE_SECONDS = 0.005
# The rows of a turn from which on the drain stays awake: it looks each PAUSE_SECONDS, and producers do not notify. It
# falls asleep after a turn of fewer than LEAST_ROWS.
BUSY_ROWS = 4
LEAST_ROWS = 2
# After an empty look without a notice the drain waits this many times as long for the next one.
LONGER = 4.0


class Pace:
    """When the next turn of one drain begins."""

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
        """How long to wait for a notice after a turn that left no row.

        What was committed since the turn is announced if producers were to notify before the turn and are heard. If
        not, the drain looks again soon, and then less and less often.
        """
        falls_asleep = not turn.asleep and self.sleeps_after(turn, rows)
        if falls_asleep or (rows and not hears):
            self._nap_seconds = PAUSE_SECONDS
        elif rows and not turn.asleep:
            return 0.0
        else:
            self._nap_seconds = min(self._nap_seconds * LONGER, poll_seconds)
        return self._nap_seconds
