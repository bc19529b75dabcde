"""Alarms: the process that stores a message with a short delay releases the message itself, to the millisecond.

Beat's tick may read the due messages before a message with a short delay is stored. No release depends on an alarm: the
next tick releases the messages that an alarm missed.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from store.commit.batch import Batch
from store.errors import Refusal
from store.process import runtime

logger = structlog.stdlib.get_logger(__name__)

# Alarms are set for at most this time ahead. Beat's ticks, 2 s apart, release messages that are due later.
HORIZON_SECONDS = 3.5
# Alarms in the same interval of this length are one alarm.
BUCKET_SECONDS = 0.005
# Pause between two tries of a release while the cell is away, for instance behind a fence.
AWAY_SECONDS = 0.3


class Alarms:
    """The alarms of one process for one cell, and the release that the alarms start. No alarm is set before `start`."""

    def __init__(self) -> None:
        self._home = runtime.here()
        self._release: Callable[[float], Awaitable[object]] | None = None
        self._buckets: set[int] = set()
        self._task: asyncio.Task[None] | None = None
        self._again = False
        # How many seconds before their due time the next release takes messages.
        self._ahead_seconds = 0.0

    def start(self, release: Callable[[float], Awaitable[object]]) -> None:
        """Allows alarms, which call `release(ahead_seconds)` to release messages due within `ahead_seconds`."""
        self._release = release

    def look_ahead(self) -> None:
        """Starts a release now that looks HORIZON_SECONDS ahead, in the running event loop.

        Called for a cell that this process has just found: its messages were delayed in another cell, which has the
        alarms for them, and beat's ticks reach the new cell seconds later.
        """
        self._ahead_seconds = HORIZON_SECONDS
        self._schedule(0)

    def set(self, batch: Batch, seconds: float) -> None:
        """Sets an alarm for `seconds` after the batch's commit. Does nothing if this time is later than HORIZON_SECONDS
        from now.
        """
        if self._release is not None and seconds <= HORIZON_SECONDS:
            batch.after_commit(lambda: self._schedule(seconds))

    def set_now(self, seconds: float) -> None:
        """Sets an alarm for `seconds` from now. Does nothing above HORIZON_SECONDS. Called after a
        commit.
        """
        if self._release is not None and seconds <= HORIZON_SECONDS:
            self._schedule(seconds)

    async def close(self) -> None:
        """Ends alarms, and cancels a release under way."""
        self._release = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _schedule(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        bucket = int((loop.time() + seconds) / BUCKET_SECONDS) + 1
        if bucket not in self._buckets:
            self._buckets.add(bucket)
            loop.call_at(bucket * BUCKET_SECONDS, self._ring, bucket)

    def _ring(self, bucket: int) -> None:
        """Starts the release. Only one release runs at a time: an alarm during a release makes it run once more."""
        self._buckets.discard(bucket)
        if self._task is None or self._task.done():
            self._task = self._home.task(self._run(), "alarm")
        else:
            self._again = True

    async def _run(self) -> None:
        give_up_at = asyncio.get_running_loop().time() + HORIZON_SECONDS
        while self._release is not None:
            self._again = False
            ahead_seconds, self._ahead_seconds = self._ahead_seconds, 0.0
            try:
                await self._release(ahead_seconds)
            except Refusal as refusal:
                self._ahead_seconds = ahead_seconds
                if asyncio.get_running_loop().time() > give_up_at:
                    logger.info("a release is left to the next tick", reason=refusal.detail)
                    return
                await asyncio.sleep(AWAY_SECONDS)
                continue
            if not self._again:
                return


def set_after(batch: Batch, seconds: float) -> None:
    """Sets an alarm of this process for `seconds` after the batch's commit: see `Alarms.set`."""
    runtime.part(Alarms).set(batch, seconds)


def set_now(seconds: float) -> None:
    """Sets an alarm of this process for `seconds` from now: see `Alarms.set_now`."""
    runtime.part(Alarms).set_now(seconds)
