"""Creates and closes the runtime of a process, and runs due work when Redis, beat or workers are missing."""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial

import structlog
from django.db import connection

from access import key_limits
from console.actions import jobs
from console.cells import standing
from console.monitoring.history.recorder import Recorder
from delivery.push import pusher
from delivery.push.pusher import Pusher
from delivery.receipts import expiry
from delivery.receive.discarded import Producers
from mqbroker.errors import refusal_of
from scheduling import lateness, release
from scheduling.alarms import Alarms
from store.cells import cells
from store.commit import stalled
from store.commit.stalled import Watch
from store.commit.writer import Writers
from store.db import connections, databases, event_loop, patience
from store.db.connections import Reads
from store.db.statements import Statement
from store.notices import heartbeats, notifier
from store.notices.notifier import Wakeups
from store.notices.presence import Present
from store.process import doors, runtime
from store.process.runtime import CONTROL, Runtime
from store.segments import lifecycle
from transactions import discards, groups
from transactions.checks import checker
from transactions.checks.checker import Checker

logger = structlog.stdlib.get_logger(__name__)


LOOK_FOR_ACTIONS = Statement(__file__, "look_for_actions", one=bool)
LOOK_FOR_WORK = Statement(__file__, "look_for_work", one=bool)

POLL_SECONDS = 2.0
# Work that has been due for less than this time is left to beat, which runs tasks every two seconds.
LATE_SECONDS = 3.0
# Segments live for hours, so a step that is some seconds late does not matter.
SEGMENTS_LATE_SECONDS = 300.0
# Seconds between two checks for late segment steps and for stalled writers.
MAINTENANCE_SECONDS = 10.0

FROM_DOORS: Sequence[tuple[str, Callable[[float], Awaitable[object]]]] = list(doors.added(doors.To.FALLBACK))


class Fallback:
    """Every POLL_SECONDS does the work that has been due for LATE_SECONDS, with a task for each cell, so that a cell
    that hangs does not delay the others.
    """

    def __init__(self) -> None:
        self._tasks: dict[Runtime | None, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Starts polling in the running event loop."""
        self._tasks[None] = asyncio.create_task(self._poll_forever(), name="fallback")

    async def _poll_forever(self) -> None:
        while True:
            await _try("cells", cells.learn_anew)
            served = runtime.cells()
            for left in self._tasks.keys() - {None, *served}:
                self._tasks.pop(left).cancel()
            for cell in served:
                if cell not in self._tasks:
                    self._tasks[cell] = cell.task(CellFallback().poll_forever(), f"fallback of {cell.name}")
            await asyncio.sleep(POLL_SECONDS)
            await _try("heartbeat", lambda: heartbeats.beat("web"))
            await _try("limits", key_limits.keep)
            await _try("presence", runtime.control(Present).note)
            await _try("history", runtime.control(Recorder).keep)
            for name, work in FROM_DOORS:
                await _try(name, partial(work, LATE_SECONDS))
            await _try("actions", self._act)

    async def _act(self) -> None:
        """Runs actions in a thread, because they use Django's ORM; their writes run on this event loop."""
        [runs] = await connections.read_control(LOOK_FOR_ACTIONS)
        if not runs:
            return
        with runtime.in_cell(CONTROL), patience.of(patience.WORK_SECONDS):
            await asyncio.to_thread(_run_actions, asyncio.get_running_loop())

    async def close(self) -> None:
        """Stops polling."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class CellFallback:
    """Does the work of one cell that has been due for LATE_SECONDS."""

    def __init__(self) -> None:
        self._oldest_due: datetime | None = None
        self._maintained_at = -MAINTENANCE_SECONDS

    async def poll_forever(self) -> None:
        """Works every POLL_SECONDS."""
        # Receives wake-ups from other processes.
        notifier.start()
        while True:
            await asyncio.sleep(POLL_SECONDS)
            await _try("work", self._work)
            if time.monotonic() - self._maintained_at >= MAINTENANCE_SECONDS:
                self._maintained_at = time.monotonic()
                await _try("stalled writers", stalled.end)
                await _try("segments", lambda: lifecycle.run(late_seconds=SEGMENTS_LATE_SECONDS))

    async def _work(self) -> None:
        # Most cells of an installation may be idle: nine statements per cell, every two seconds, took 1.2 % of a core
        # for ten cells.
        if runtime.here().cell != CONTROL:
            [waits] = await connections.read(LOOK_FOR_WORK, release.QUEUES_OF_LEVELS)
            if not waits:
                # This process may have released the last message by an alarm, so it stores the lateness here.
                await lateness.keep()
                return
        await _try("release", self._release)
        await _try("checks", lambda: checker.run(late_seconds=LATE_SECONDS))
        await _try("expiry", lambda: expiry.run(late_seconds=LATE_SECONDS))
        await _try("discards", lambda: discards.run(late_seconds=LATE_SECONDS))
        await _try("push", lambda: pusher.run(late_seconds=LATE_SECONDS))

    async def _release(self) -> None:
        stalled, self._oldest_due = await release.stalled(LATE_SECONDS, self._oldest_due)
        if stalled:
            await release.run()
        # Alarms of this process may have released messages; without a worker only this call stores their lateness.
        await lateness.keep()


async def _try(name: str, work: Callable[[], Awaitable[object]]) -> None:
    """Does one kind of work. While the database is away, it only logs that the work has to wait.

    Actions use Django's ORM, and maintaining segments uses a connection outside of the pool: there, a server that ends
    raises an OperationalError of Django or psycopg, not a Refusal.
    """
    try:
        await work()
    except Exception as problem:
        refusal = refusal_of(problem)
        if refusal is None:
            logger.exception("the fallback failed", work=name)
        else:
            logger.warning("the fallback could not work", work=name, reason=refusal.detail)


def _run_actions(loop: asyncio.AbstractEventLoop) -> None:
    try:
        jobs.run(lambda work: asyncio.run_coroutine_threadsafe(work, loop).result(), late_seconds=LATE_SECONDS)
    finally:
        # A connection that stays with a thread of this pool could not be used by other threads.
        connection.close()


class Left:
    """The cells that this process no longer uses. Each cell stays in this list until its parts are closed."""

    def __init__(self) -> None:
        self._closing: set[asyncio.Task[None]] = set()

    def close_soon(self, cell: Runtime) -> None:
        """Closes the parts of a cell after waiting requests are written, without blocking the caller."""
        closing = cell.task(self._close(cell), f"leave {cell.name}")
        self._closing = {task for task in self._closing if not task.done()} | {closing}

    async def _close(self, cell: Runtime) -> None:
        await asyncio.to_thread(databases.leave, cell.cell)
        await cell.close(CLOSED_FIRST)

    async def close(self) -> None:
        """Waits until all these cells are closed."""
        await asyncio.gather(*self._closing, return_exceptions=True)


# Parts that start work are closed first, and then the parts that the work uses.
CLOSED_FIRST = (*doors.added(doors.To.CLOSED_FIRST), Pusher, Checker, Alarms, Writers, Watch, Wakeups, Reads)


def start() -> None:
    """Creates this process's runtime. Its alarms release the messages that this process delays.

    Other cells are found later.
    """
    made = Runtime()
    made.begins, made.ends = _begin_anew, made.part(Left).close_soon
    made.explain = standing.explain
    _begin(made)
    made.part(Producers).start(groups.names)
    runtime.install(made)


def _begin(cell: Runtime) -> None:
    cell.part(Alarms).start(release.run)


def _begin_anew(cell: Runtime) -> None:
    _begin(cell)
    cell.part(Alarms).look_ahead()


async def close() -> None:
    """Closes the runtime: ends pushes and checks, writes waiting requests, closes connections."""
    await runtime.current().close(CLOSED_FIRST)


def close_worker() -> None:
    """Closes a worker's runtime. May be called from any of its threads."""
    event_loop.run(close(), limit_seconds=10)


def spare_collector() -> None:
    """Excludes all present objects from garbage collection, and then turns collection on, with higher thresholds.

    A batch creates thousands of short-lived objects; with the default thresholds, full collections ran during a batch.
    Unreachable objects of the start stay in memory: freeing them would take 0.1 s, a seventh of the start, for 2,500 of
    120,000 objects.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
