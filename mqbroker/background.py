"""The fallback poller: keeps what is due moving, late by seconds, while Redis, beat or the workers are gone."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog

from delivery import expiry
from delivery.push import pusher
from scheduling import lateness, release
from store import notifier
from store.commit import writer
from store.db import connections, event_loop
from store.errors import Refusal
from store.segments import lifecycle
from transactions import discards
from transactions.checks import checker

logger = structlog.stdlib.get_logger(__name__)

LOOK_SECONDS = 2.0
# Younger work is the beat's: it ticks every two seconds.
LATE_SECONDS = 3.0
# A segment that is hours old is not late by seconds.
SEGMENTS_LATE_SECONDS = 300.0


class Fallback:
    """Looks every LOOK_SECONDS whether something has been due for LATE_SECONDS, and then does it in this process."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._oldest_due: datetime | None = None

    def start(self) -> None:
        """Begins to look; in the running event loop."""
        self._task = asyncio.create_task(self._look_forever(), name="fallback")

    async def _look_forever(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._try(self._release)
            await self._try(lambda: checker.run(late_seconds=LATE_SECONDS))
            await self._try(lambda: expiry.run(late_seconds=LATE_SECONDS))
            await self._try(lambda: discards.run(late_seconds=LATE_SECONDS))
            await self._try(lambda: pusher.run(late_seconds=LATE_SECONDS))
            await self._try(lambda: lifecycle.run(late_seconds=SEGMENTS_LATE_SECONDS))

    async def _release(self) -> None:
        stalled, self._oldest_due = await release.stalled(LATE_SECONDS, self._oldest_due)
        if stalled:
            await release.run()
        # What this process released itself, and nothing after it: no run comes by to keep those figures.
        await lateness.keep()

    async def _try(self, work: Callable[[], Awaitable[object]]) -> None:
        try:
            await work()
        except Refusal as refusal:
            logger.warning("the fallback could not work", reason=refusal.detail)
        except Exception:
            logger.exception("the fallback failed")

    async def close(self) -> None:
        """Stops looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None


async def close() -> None:
    """Ends what runs in this process's event loop: asks and pushes no more, writes what is waiting, lets go."""
    await pusher.pusher.close()
    await checker.checker.close()
    await writer.writers.close()
    await notifier.wakeups.close()
    await connections.reads.close()


def close_worker() -> None:
    """The same for a worker, from any of its threads."""
    event_loop.run(close(), limit_seconds=10)


def spare_collector() -> None:
    """Leaves what a process loaded at its start out of every garbage collection, and collects less often.

    A batch makes thousands of short-lived objects; with the default thresholds whole collections ran during it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
