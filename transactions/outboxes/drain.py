"""Drains outboxes: each web process has a task for each outbox, and one process at a time takes and stores its rows.

A transaction in the source takes rows, waits until their messages are stored, and commits. If it ends earlier for any
reason, the rows stay in the table; because of their ids a repetition stores nothing twice.
"""

import asyncio
import contextlib
import time

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
from transactions.outboxes.messages import OF_CONTENT
from transactions.outboxes.pace import Pace
from transactions.outboxes.progress import IN_VAIN_SECONDS, Progress, Queueing, Size, turn_taken
from transactions.outboxes.rows import Listed, Turn
from transactions.outboxes.sessions import SourceUnreadable
from transactions.outboxes.source import (
    CLEAR_SLOT,
    FALL_ASLEEP,
    FIND_HOLDER,
    HOLD_STATE,
    LOOK_AT_OUTBOX,
    TURN_SLOT,
    Source,
)
from transactions.outboxes.turns import SMALL_BYTES, Batch, NotSmall, Taken, held, take_small

logger = structlog.stdlib.get_logger(__name__)

LIST_OUTBOXES = Statement(__file__, "list_outboxes", Listed)

# How long this process waits while another process drains the outbox.
STANDBY_SECONDS = 0.5
FAILED_SECONDS = 2.0
# The limit of one step, longer than a source allows a transaction. If a step exceeds it, the drain connects again.
STEP_SECONDS = 60.0
MAX_WAITING = 100_000
# After this number of rows producers insert into the other partition, and the first is emptied to free its disk space.
SLOT_ROWS = 10_000
# The time between two tries to give back the disk of a partition.
CLEAR_SECONDS = 0.25


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
        self._pace = Pace()

    async def forever(self) -> None:
        """Drains until it is cancelled. Failures are noted, and draining is tried again."""
        while True:
            try:
                await self._connected()
            except (psycopg.Error, OSError, Refusal, SecretUnreadable) as problem:
                reason = places.said_of(problem, self.listed.url)
                logger.warning("an outbox cannot be drained", outbox=self.listed.name, reason=reason)
                await self._progress.failed(reason)
            except Exception as problem:
                # A fault of the broker itself: operators see it, and the rows stay in the table.
                logger.exception("draining an outbox failed", outbox=self.listed.name)
                await self._progress.failed(f"a fault of the broker: {type(problem).__name__}, see its log")
            await asyncio.sleep(FAILED_SECONDS)

    async def _connected(self) -> None:
        opened = self.listed._replace(url=sealing.opened(self.listed.url))
        source = await Source.connected(opened)
        listener = Listener(opened)
        listening = None
        try:
            await fitness.require(source)  # before the first note in the row, which would report success
            self._looks = fitness.Looks()
            if source.notifies:
                listening = runtime.current().task(listener.forever(), f"listener of the outbox {opened.name}")
            while True:
                await listener.wait(await self._timely_step(source, listener))
                await self._pace.begin()
                listener.forget()
        finally:
            if listening is not None:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
            await source.close()

    async def _timely_step(self, source: Source, listener: Listener) -> float:
        try:
            async with asyncio.timeout(STEP_SECONDS):
                return await self._step(source, listener)
        except TimeoutError:
            raise SourceUnreadable(f"The outbox's database did not finish a step within {STEP_SECONDS:g} s.") from None

    async def _step(self, source: Source, listener: Listener) -> float:
        """Takes the next rows. Returns how long to wait for a notice before the next step."""
        if self._progress.look_is_due() and self._queueing.counts:
            # The waiting rows are counted even without the turn, because perhaps no process gets the turn.
            async with source.transaction():
                [waits] = await source.read(LOOK_AT_OUTBOX, {"max_count": MAX_WAITING})
            self._progress.saw(waits)
        turn, taken = await self._turn(source)
        if not turn.is_mine and not turn.is_idle:
            await self._queue(source, turn)
            return STANDBY_SECONDS
        if turn.is_idle:
            await self._looks.idle(source)
        self._queueing.got()
        self._progress.add(taken.rows - taken.refused, taken.refused)
        await self._slots.drained(source, taken.rows)
        await self._progress.note()
        if taken.must_wait:
            # Other outboxes use all bytes that this process may use for rows.
            return STANDBY_SECONDS
        if taken.are_more:
            return 0.0
        return self._pace.wait_seconds(turn, taken.rows, hears=listener.hears, poll_seconds=listener.poll_seconds)

    async def _turn(self, source: Source) -> tuple[Turn, Taken]:
        """The first waiting row, and the rows taken if this process has the turn."""
        try:
            try:
                turn, taken = await self._small_turn(source)
            except (NotSmall, *OF_CONTENT):
                turn, taken = await self._careful_turn(source)
        except BaseException:
            self._size.failed()
            self._queueing.got()  # This failure is shown, and not the wait for the turn before it.
            raise
        if turn.is_mine:
            self._size.succeeded()
        return turn, taken

    async def _small_turn(self, source: Source) -> tuple[Turn, Taken]:
        """A turn in one step, which is enough for small rows that all become messages. Raises NotSmall.

        The turn after a refusal is never small: a small turn takes all of its rows or none, so a limit below the number
        of its rows would be used up by the same first rows again and again.
        """
        if self._closed.are_some:
            raise NotSmall
        async with contextlib.AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(held(SMALL_BYTES))
            except TimeoutError:
                return Turn(asleep=True, slot=None, seq=None, is_mine=True), Taken(must_wait=True)
            rows = await stack.enter_async_context(source.small_turn(self._size.rows, SMALL_BYTES))
            turn, taken = rows[0].turn, Taken()
            if turn.is_mine:
                taken = await take_small(rows, self.listed)
                await self._fall_asleep(source, turn, taken)
        return turn, taken

    async def _careful_turn(self, source: Source) -> tuple[Turn, Taken]:
        """A turn that measures rows before it takes them, and finds rows that cannot become messages."""
        taken = Taken()
        async with source.turn() as turn:
            if turn.is_mine:
                taken = await Batch(source, self.listed, self._size.rows, self._closed).take(turn)
                await self._fall_asleep(source, turn, taken)
        return turn, taken

    async def _fall_asleep(self, source: Source, turn: Turn, taken: Taken) -> None:
        asleep = self._pace.sleeps_after(turn, taken.rows)
        if turn.asleep != asleep:
            await source.write(FALL_ASLEEP, {"asleep": asleep})

    async def _queue(self, source: Source, turn: Turn) -> None:
        """Notes that another session has the turn. Raises TurnTaken if the other session does nothing with the turn."""
        seconds = self._queueing.wants(turn)
        if seconds >= IN_VAIN_SECONDS:
            async with source.transaction():
                raise turn_taken(await source.read(FIND_HOLDER), seconds)
        if self._queueing.counts:
            await self._progress.note(stands_by=True)


class Slots:
    """Decides when to give back the disk space of a partition, so that the table stays small.

    A session with an old snapshot keeps deleted rows on disk, but does not keep a truncated file.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._emptied: int | None = None
        self._tried_at = -CLEAR_SECONDS

    async def drained(self, source: Source, rows: int) -> None:
        """Counts drained rows. After SLOT_ROWS lets new rows go to the other partition, or truncates the empty one.

        Only producers with a table of an earlier docs/sql.md read this setting; other producers choose the partition by
        their own count.
        """
        self._rows += rows
        if self._emptied is None and self._rows < SLOT_ROWS:
            return
        if time.monotonic() - self._tried_at < CLEAR_SECONDS:
            return
        self._tried_at = time.monotonic()
        async with source.transaction():
            if not await source.read(HOLD_STATE):
                return
            if self._emptied is not None:
                [is_cleared] = await source.read(CLEAR_SLOT, {"slot": self._emptied})
                if is_cleared:
                    self._emptied = None
            elif turned := await source.read(TURN_SLOT):
                self._rows, self._emptied = 0, turned[0]


class Drains:
    """The drains of this process, one for each registered outbox."""

    def __init__(self) -> None:
        self._tasks: dict[int, tuple[Listed, asyncio.Task[None]]] = {}

    async def keep(self) -> None:
        """Starts and ends drains, so that each registered outbox has one."""
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
