"""Alarms: a delay that ends before the next tick of beat is released by the process that stored it, to the millisecond.

The tick under way may have read before the message was stored. Nothing depends on an alarm: what it misses, a tick
releases.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from store import runtime
from store.commit.batch import Batch
from store.errors import Refusal

logger = structlog.stdlib.get_logger(__name__)

HORIZON_SECONDS = 3.5
# Alarms that are nearer to each other are one.
BUCKET_SECONDS = 0.005


class Alarms:
    """The alarms of one process, and the release that they start. Without a release none is set."""

    def __init__(self) -> None:
        self._release: Callable[[], Awaitable[object]] | None = None
        self._buckets: set[int] = set()
        self._task: asyncio.Task[None] | None = None
        self._asked_again = False

    def start(self, release: Callable[[], Awaitable[object]]) -> None:
        """Sets alarms from now on; each runs `release`, which releases everything that is due."""
        self._release = release

    def set(self, batch: Batch, seconds: float) -> None:
        """Sets an alarm so many seconds after the batch's commit, when that is before the horizon."""
        if self._release is not None and seconds <= HORIZON_SECONDS:
            batch.after_commit(lambda: self._schedule(seconds))

    def set_now(self, seconds: float) -> None:
        """Sets an alarm so many seconds from now, after a commit, when that is before the horizon."""
        if self._release is not None and seconds <= HORIZON_SECONDS:
            self._schedule(seconds)

    async def close(self) -> None:
        """Sets no more alarms and ends a release under way."""
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
        """Releases now. One release runs at a time: an alarm meanwhile makes it run once more."""
        self._buckets.discard(bucket)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="alarm")
        else:
            self._asked_again = True

    async def _run(self) -> None:
        try:
            while self._release is not None:
                self._asked_again = False
                await self._release()
                if not self._asked_again:
                    return
        except Refusal as refusal:
            logger.info("a release is left to the next tick", reason=refusal.detail)


def set_after(batch: Batch, seconds: float) -> None:
    """Sets an alarm of this process so many seconds after the batch's commit; as `Alarms.set`."""
    runtime.part(Alarms).set(batch, seconds)


def set_now(seconds: float) -> None:
    """Sets an alarm of this process so many seconds from now; as `Alarms.set_now`."""
    runtime.part(Alarms).set_now(seconds)
