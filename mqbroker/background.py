"""The fallback poller: keeps what is due moving, late by seconds, while Redis, beat or the workers are gone."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog

from delivery import expiry
from delivery.push import pusher
from delivery.push.pusher import Pusher
from scheduling import lateness, release
from scheduling.alarms import Alarms
from store import runtime
from store.commit.writer import Writers
from store.db import event_loop
from store.db.connections import Reads
from store.errors import Refusal
from store.notifier import Wakeups
from store.runtime import Runtime
from store.segments import lifecycle
from transactions import discards
from transactions.checks import checker
from transactions.checks.checker import Checker

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


# What begins work is closed before what the work needs.
CLOSED_FIRST = (Pusher, Checker, Alarms, Writers, Wakeups, Reads)


def start() -> None:
    """Makes this process's runtime: what it delays itself is released by alarms."""
    made = Runtime()
    made.part(Alarms).start(release.run)
    runtime.install(made)


async def close() -> None:
    """Closes the runtime: ends pushes and checks, writes what waits, closes connections."""
    await runtime.current().close(CLOSED_FIRST)


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
