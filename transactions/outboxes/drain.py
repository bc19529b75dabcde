"""Drains outboxes: each web process has a task for each, and one of them at a time takes rows and stores them.

A source's transaction takes rows, waits until their messages are stored, and commits. Whatever ends it before leaves
the rows where they were; their ids let the repetition store nothing twice.
"""

import asyncio

import psycopg
import structlog

from store.db import connections, sealing
from store.db.sealing import SecretUnreadable
from store.db.statements import Statement
from store.errors import Refusal
from store.process import runtime
from transactions.outboxes import fitness, places
from transactions.outboxes.closed import Closed
from transactions.outboxes.listener import Listener
from transactions.outboxes.progress import IN_VAIN_SECONDS, Progress, Queueing, Size, turn_taken
from transactions.outboxes.rows import Listed, Turn
from transactions.outboxes.source import (
    CLEAR_SLOT,
    FALL_ASLEEP,
    FIND_HOLDER,
    HOLD_STATE,
    LOOK_AT_OUTBOX,
    TURN_SLOT,
    Source,
    SourceUnreadable,
)
from transactions.outboxes.turns import Batch, Taken

logger = structlog.stdlib.get_logger(__name__)

LIST_OUTBOXES = Statement(__file__, "list_outboxes", Listed)

# After a step with so many rows the drain steps again by itself, and producers need not notify it.
BUSY_ROWS = 50
# While another process drains it.
STANDBY_SECONDS = 0.5
FAILED_SECONDS = 2.0
# Of one step in all: above what a source allows a transaction.
STEP_SECONDS = 60.0
MAX_WAITING = 100_000
# After so many rows new ones go to the other partition, and the disk of this one is given back.
SLOT_ROWS = 10_000


class Drain:
    """The draining of one outbox in this process."""

    def __init__(self, listed: Listed) -> None:
        self.listed = listed
        self._closed = Closed()
        self._progress = Progress(listed, self._closed)
        self._slots = Slots()
        self._size = Size()
        self._queueing = Queueing()
        self._looks = fitness.Looks()

    async def forever(self) -> None:
        """Drains until it is cancelled; what fails is noted, and tried again."""
        while True:
            try:
                await self._connected()
            except (psycopg.Error, OSError, Refusal, SecretUnreadable) as problem:
                reason = places.said_of(problem, self.listed.url)
                logger.warning("an outbox cannot be drained", outbox=self.listed.name, reason=reason)
                await self._progress.failed(reason)
            except Exception as problem:
                # A fault of ours: it is shown where operators look, and the rows stay.
                logger.exception("draining an outbox failed", outbox=self.listed.name)
                await self._progress.failed(f"a fault of the broker: {type(problem).__name__}, see its log")
            await asyncio.sleep(FAILED_SECONDS)

    async def _connected(self) -> None:
        opened = self.listed._replace(url=sealing.opened(self.listed.url))
        source = await Source.connected(opened)
        listener = Listener(opened)
        listening = None
        try:
            await fitness.require(source)  # before a note, which would say that all is well
            self._looks = fitness.Looks()
            if source.notifies:
                listening = runtime.current().task(listener.forever(), f"listener of the outbox {opened.name}")
            while True:
                await listener.wait(await self._timely_step(source, listener.poll_seconds))
        finally:
            if listening is not None:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
            await source.close()

    async def _timely_step(self, source: Source, poll_seconds: float) -> float:
        try:
            async with asyncio.timeout(STEP_SECONDS):
                return await self._step(source, poll_seconds)
        except TimeoutError:
            raise SourceUnreadable(f"The source has not come to an end of a turn within {STEP_SECONDS:g} s.") from None

    async def _step(self, source: Source, poll_seconds: float) -> float:
        """Takes what is there; returns how long to wait for a notice before the next step."""
        if self._progress.look_is_due() and self._queueing.counts:
            # Without the turn: it may be that no process gets that.
            async with source.transaction():
                [waits] = await source.read(LOOK_AT_OUTBOX, {"max_count": MAX_WAITING})
            self._progress.saw(waits.waiting, waits.oldest_at)
        turn, taken = await self._turn(source)
        if not turn.is_mine and not turn.is_idle:
            await self._queue(source, turn)
            return STANDBY_SECONDS
        if turn.is_idle:
            await self._looks.idle(source)
        self._queueing.got()
        self._progress.add(taken.rows - taken.refused, taken.refused)
        await self._progress.note()
        await self._slots.drained(source, taken.rows)
        if taken.must_wait:
            # Other outboxes hold all the bytes that this process may: theirs come first.
            return STANDBY_SECONDS
        return 0.0 if taken.rows else poll_seconds

    async def _turn(self, source: Source) -> tuple[Turn, Taken]:
        """What waited, and what was taken of it where this process has the turn."""
        taken = Taken()
        try:
            async with source.turn() as turn:
                if turn.is_mine:
                    taken = await Batch(source, self.listed, self._size.rows, self._closed).take(turn)
                    asleep = taken.rows < BUSY_ROWS
                    if turn.asleep != asleep:
                        await source.write(FALL_ASLEEP, {"asleep": asleep})
        except BaseException:
            self._size.failed()
            raise
        if turn.is_mine:
            self._size.succeeded()
        return turn, taken

    async def _queue(self, source: Source, turn: Turn) -> None:
        """Another session has the turn. Raises TurnTaken where it does nothing with it."""
        seconds = self._queueing.wants(turn)
        if seconds >= IN_VAIN_SECONDS:
            async with source.transaction():
                raise turn_taken(await source.read(FIND_HOLDER), seconds)
        if self._queueing.counts:
            await self._progress.note()


class Slots:
    """Which partition is to be given back. The table stays small beside a reader whose snapshot is old: that keeps rows
    which were deleted, and no file that was truncated.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._emptied: int | None = None

    async def drained(self, source: Source, rows: int) -> None:
        """Counts rows, and turns to the other partition after SLOT_ROWS, or gives the emptied one back."""
        self._rows += rows
        if self._emptied is None and self._rows < SLOT_ROWS:
            return
        async with source.transaction():
            if not await source.read(HOLD_STATE):
                return
            if self._emptied is not None:
                [cleared] = await source.read(CLEAR_SLOT, {"slot": self._emptied})
                if cleared.is_cleared:
                    self._emptied = None
            elif turned := await source.read(TURN_SLOT):
                self._rows, self._emptied = 0, turned[0].slot


class Drains:
    """The drains of this process, one for each outbox as it is registered now."""

    def __init__(self) -> None:
        self._tasks: dict[int, tuple[Listed, asyncio.Task[None]]] = {}

    async def keep(self) -> None:
        """Begins and ends drains as the registry says."""
        found = {row.id: row for row in await connections.read_control(LIST_OUTBOXES)}
        for id_, (listed, task) in list(self._tasks.items()):
            if found.get(id_) != listed or task.done():
                task.cancel()
                del self._tasks[id_]
        for id_, listed in found.items():
            if id_ not in self._tasks:
                task = runtime.current().task(Drain(listed).forever(), f"outbox {listed.name}")
                self._tasks[id_] = (listed, task)

    async def close(self) -> None:
        """Ends all drains."""
        tasks = [task for _, task in self._tasks.values()]
        self._tasks = {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
