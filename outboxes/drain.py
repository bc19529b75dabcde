"""Drains outboxes: each web process has a task for each, and one of them at a time takes rows and stores them.

A source's transaction takes rows, waits until their messages are stored, and commits. Whatever ends it before leaves
the rows where they were; their ids let the repetition store nothing twice.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import psycopg
import structlog
from django.conf import settings

from access.callers import Caller
from outboxes import messages
from outboxes.source import (
    CLEAR_SLOT,
    FALL_ASLEEP,
    LOOK_AT_OUTBOX,
    MEASURE_ROWS,
    SET_APART,
    SET_LARGE_APART,
    TAKE_ROWS,
    TURN_SLOT,
    Listed,
    Measured,
    Source,
    Waits,
)
from store.db import connections, sealing
from store.db.sealing import SecretUnreadable
from store.db.statements import Statement
from store.errors import Refusal
from store.messages import MAX_PROPERTIES_BYTES
from store.process import runtime
from webhooks.slots import Allowance

logger = structlog.stdlib.get_logger(__name__)

LIST_OUTBOXES = Statement(__file__, "list_outboxes", Listed)
NOTE_OUTBOX = Statement(__file__, "note_outbox")

MAX_ROWS = 500
MAX_BYTES = 4 * 1024 * 1024
# Of all outboxes together in one process; a batch waits for its share.
MAX_HELD_BYTES = 16 * 1024 * 1024
HOLD_SECONDS = 5.0
# After a step with so many rows the drain steps again by itself, and producers need not notify it.
BUSY_ROWS = 50
# Finds what was committed between a look and the sleep; and where a proxy passes no notices.
POLL_SECONDS = 1.0
# While another process drains it.
STANDBY_SECONDS = 0.5
FAILED_SECONDS = 2.0
NOTE_SECONDS = 1.0
LOOK_SECONDS = 5.0
MAX_WAITING = 100_000
# After so many rows new ones go to the other partition, and the disk of this one is given back.
SLOT_ROWS = 10_000


class Taken(NamedTuple):
    """The rows that were taken, and how many of them were set apart."""

    rows: int = 0
    refused: int = 0


class Drain:
    """The draining of one outbox in this process."""

    def __init__(self, listed: Listed) -> None:
        self.listed = listed
        self._caller = Caller(f"outbox {listed.name}", tuple(f"produce:{topic}" for topic in listed.topics))
        self._progress = Progress(listed)
        self._slot = Slots()

    async def forever(self) -> None:
        """Drains until it is cancelled; what fails is noted, and tried again."""
        while True:
            try:
                await self._connected()
            except (psycopg.Error, OSError, Refusal, SecretUnreadable) as problem:
                reason = " ".join(str(problem).split())[:500] or type(problem).__name__
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
        try:
            while True:
                await source.wait(await self._step(source))
        finally:
            await source.close()

    async def _step(self, source: Source) -> float:
        """Takes what is there; returns how long to wait for a notice before the next step."""
        waits: Sequence[Waits] = ()
        async with source.turn() as is_mine:
            if not is_mine:
                return STANDBY_SECONDS
            limits = {"max_rows": MAX_ROWS, "max_row_bytes": settings.MAX_MESSAGE_BYTES + MAX_PROPERTIES_BYTES}
            [measured] = await source.read(MEASURE_ROWS, limits)
            if measured.large:
                reason = f"message_too_large: the row has more than {limits['max_row_bytes']:,} bytes"
                await source.write(SET_LARGE_APART, {**limits, "reason": reason})
            try:
                taken = await self._take(source, limits, measured) if measured.next_rows > measured.large else Taken()
            except TimeoutError:
                # Other outboxes hold all the bytes that this process may: theirs come first.
                return STANDBY_SECONDS
            await source.write(FALL_ASLEEP, {"asleep": measured.next_rows < BUSY_ROWS})
            if self._progress.look_is_due():
                waits = await source.read(LOOK_AT_OUTBOX, {"max_count": MAX_WAITING})
        self._progress.add(taken.rows - taken.refused, taken.refused + measured.large)
        if waits:
            self._progress.saw(waits[0].waiting, waits[0].oldest_at)
        await self._progress.note()
        await self._slot.drained(source, taken.rows + measured.large)
        return 0.0 if measured.next_rows else POLL_SECONDS

    async def _take(self, source: Source, limits: Mapping[str, int], measured: Measured) -> Taken:
        """Takes rows, stores their messages, and sets apart what is refused. Raises TimeoutError without a row."""
        size = min(measured.bytes, MAX_BYTES + limits["max_row_bytes"])
        async with runtime.control(Held).bytes.hold(size, HOLD_SECONDS):
            rows = await source.read(TAKE_ROWS, {**limits, "max_bytes": MAX_BYTES})
            refused = await messages.store(rows, self._caller)
        for one in refused:
            kept = one.row._asdict()
            del kept["slot"], kept["seq"]
            await source.write(SET_APART, {**kept, "reason": one.reason})
        return Taken(len(rows), len(refused))


class Held:
    """The bytes of rows that the drains of this process hold together."""

    def __init__(self) -> None:
        self.bytes = Allowance(MAX_HELD_BYTES)


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
        async with source.turn() as is_mine:
            if not is_mine:
                return
            if self._emptied is not None:
                [cleared] = await source.read(CLEAR_SLOT, {"slot": self._emptied})
                if cleared.is_cleared:
                    self._emptied = None
            elif turned := await source.read(TURN_SLOT):
                self._rows, self._emptied = 0, turned[0].slot


class Progress:
    """What this process has to note of an outbox."""

    def __init__(self, listed: Listed) -> None:
        self._of = {"id": listed.id, "url": listed.url}
        self._drained = self._refused = 0
        self._waits: tuple[int, datetime | None] | None = None
        self._noted_at = self._looked_at = -LOOK_SECONDS

    def add(self, drained: int, refused: int) -> None:
        """Counts rows that are committed."""
        self._drained += drained
        self._refused += refused

    def look_is_due(self) -> bool:
        """Whether what waits is to be counted again."""
        return time.monotonic() - self._looked_at >= LOOK_SECONDS

    def saw(self, waiting: int, oldest_at: datetime | None) -> None:
        """Keeps what waits, for the next note."""
        self._looked_at = time.monotonic()
        self._waits = waiting, oldest_at

    async def note(self) -> None:
        """Writes what there is to note, every NOTE_SECONDS at most."""
        is_news = self._drained or self._refused or self._waits
        if is_news and time.monotonic() - self._noted_at >= NOTE_SECONDS:
            await self._write(None)

    async def failed(self, reason: str) -> None:
        """Writes why it cannot be drained. While the broker's database is away there is no place for it but the log."""
        try:
            await self._write(reason)
        except Refusal as refusal:
            logger.warning("an outbox's failure could not be noted", reason=refusal.detail)

    async def _write(self, failure: str | None) -> None:
        self._noted_at = time.monotonic()
        waiting, oldest_at = self._waits or (None, None)
        noted = {"drained": self._drained, "refused": self._refused, "waiting": waiting, "oldest_at": oldest_at}
        await connections.read_control(NOTE_OUTBOX, {**self._of, "failure": failure, **noted})
        self._drained = self._refused = 0
        self._waits = None


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
