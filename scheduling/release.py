"""Release: moves what is due from the levels' queues and the timers to its real topic and queue.

The scheduler's position and the deliveries commit together, so that a restart repeats nothing and a failed delivery is
tried again. Every due time is judged by the database's clock. Safe with any number of processes at once: a position is
moved under its lock, a timer is released by its delete.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from scheduling import delays, lateness
from scheduling.publish import Publication, publish
from scheduling.rows import DueEntry, DueTimer, LevelHead, NextTimer, RecalledEntry
from store import progress, topics
from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.db import connections
from store.db.connections import Row
from store.db.statements import Statement
from store.segments import reappend

DELAY_LEVEL_HEADS = Statement(__file__, "delay_level_heads", LevelHead)
NEXT_TIMER = Statement(__file__, "next_timer", NextTimer)
TAKE_DUE_OF_LEVEL = Statement(__file__, "take_due_of_level", DueEntry)
TAKE_RECALLS = Statement(__file__, "take_recalls", RecalledEntry)
TAKE_TIMERS = Statement(__file__, "take_timers", DueTimer)

MAX_PER_BATCH = 1000
# Between two looks while something is due within the tick: lateness is half of it on the average.
LOOK_SECONDS = 0.010
# What somebody else holds is left to him after this; a tick comes within two seconds.
HELD_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Due:
    """What a look ahead found: the level queues and whether timers have something due, and when the next thing is."""

    now: datetime
    level_queues: tuple[int, ...]
    timers: bool
    next_at: datetime | None

    @property
    def is_now(self) -> bool:
        """Whether anything is due."""
        return self.timers or bool(self.level_queues)

    def seconds_to_next(self, otherwise: float) -> float:
        """Until the next thing is due; nothing waits: `otherwise`."""
        return otherwise if self.next_at is None else (self.next_at - self.now).total_seconds()


async def run(ahead_seconds: float = 0) -> int:
    """Releases what is due by now and what becomes due within `ahead_seconds`; gives the number released.

    Beat ticks are two seconds apart: looking ahead makes lateness milliseconds all the same.
    """
    clock = asyncio.get_running_loop().time
    began = clock()
    due = await look()
    released = 0
    while True:
        while due.is_now and (moved := await writer.submit(RELEASES, due)):
            released += moved
            due = await look()
        # What is due and did not move is held by another process, which releases it, or recalls some: for a moment.
        left = began + max(ahead_seconds, HELD_SECONDS if due.is_now else 0) - clock()
        wait = due.seconds_to_next(left)
        if left <= 0 or wait >= left:
            await lateness.keep()
            return released
        await asyncio.sleep(max(wait, LOOK_SECONDS))
        due = await look()


async def stalled(late_seconds: float, last_seen: datetime | None) -> tuple[bool, datetime | None]:
    """Whether nobody releases: the oldest thing is due for `late_seconds`, and was the oldest at the last look.

    Gives the oldest thing's due time too, for the next look. While others work off a backlog, it moves.
    """
    due = await look()
    late = due.next_at is not None and due.next_at < due.now - timedelta(seconds=late_seconds)
    return late and due.next_at == last_seen, due.next_at


async def look() -> Due:
    """What is due now, and what is next. The database's clock is read after the heads."""
    heads = await connections.read(DELAY_LEVEL_HEADS)
    timer = (await connections.read(NEXT_TIMER))[0]
    times = {head.queue_id: _due_of(head.due_ms, head.queue_id + 1, timer.now) for head in heads}
    waiting = [*times.values(), *([timer.due_at] if timer.due_at is not None else [])]
    return Due(
        now=timer.now,
        level_queues=tuple(queue for queue, due_at in times.items() if due_at <= timer.now),
        timers=timer.due_at is not None and timer.due_at <= timer.now,
        next_at=min(waiting, default=None),
    )


def _due_of(due_ms: int, level: int, now: datetime) -> datetime:
    return delays.corrected(_time_of(due_ms, now), level, now)


def _time_of(due_ms: int, now: datetime) -> datetime:
    return datetime.fromtimestamp(due_ms / 1000, now.tzinfo)


def _note(batch: Batch, queue_id: int, late: list[timedelta]) -> None:
    """Counts how late these are visible, once they are: the write takes its time, too."""
    loop = asyncio.get_running_loop()
    taken_at = loop.time()

    def visible() -> None:
        written_ms = (loop.time() - taken_at) * 1000
        lateness.note(queue_id, (one.total_seconds() * 1000 + written_ms for one in late))

    batch.after_commit(visible)


class Releases(Kind[Due]):
    """Releases are written in a batch: what is due in every level and timer, and the scheduler's new positions."""

    async def decide(self, batch: Batch, pending: list[Pending[Due]]) -> None:
        level_queues = sorted({queue for one in pending for queue in one.request.level_queues})
        released = 0
        if any(one.request.timers for one in pending):
            released += await self._timers(batch)
        if level_queues:
            released += await self._levels(batch, level_queues)
        for one in pending:
            one.outcome = released

    async def _timers(self, batch: Batch) -> int:
        timers = await batch.read(TAKE_TIMERS, {"now": batch.now, "max_timers": MAX_PER_BATCH})
        _note(batch, lateness.TIMERS, [timer.now - timer.due_at for timer in timers])
        await _publish(batch, [_of_timer(timer) for timer in sorted(timers, key=lambda row: (row.due_at, row.id))])
        return len(timers)

    async def _levels(self, batch: Batch, level_queues: list[int]) -> int:
        """Releases at the levels at which nobody else does: one that stopped in the middle holds up its level alone."""
        schedule = await topics.own(topics.SCHEDULE, queues=1)
        queues = await progress.try_lock(batch, progress.SCHEDULER, [(schedule.id, queue) for queue in level_queues])
        released = 0
        for position in await progress.positions(batch, progress.SCHEDULER, queues):
            released += await self._level(batch, position)
        return released

    async def _level(self, batch: Batch, position: Row) -> int:
        start = max(position.next_offset or 0, position.min_offset)
        entries = await batch.read(
            TAKE_DUE_OF_LEVEL,
            {
                "topic_id": position.topic_id,
                "queue_id": position.queue_id,
                "from_offset": start,
                "max_entries": MAX_PER_BATCH,
            },
        )
        due = _due_in_order(entries, position.queue_id + 1)
        recalled = await self._recalled(batch, position.queue_id, due)
        await _publish(batch, [_of_entry(entry) for entry in due if entry.queue_offset not in recalled])
        if due:
            queue = (position.topic_id, position.queue_id)
            _note(batch, position.queue_id, [entry.now - _time_of(entry.due_ms, entry.now) for entry in due])
            progress.move(batch, progress.SCHEDULER, queue, (position.move or 0) + 1, due[-1].queue_offset + 1)
        return len(due)

    async def _recalled(self, batch: Batch, queue_id: int, due: list[Row]) -> set[int]:
        """The offsets among those due that were recalled; their notes go."""
        if not due:
            return set()
        asked = {"queue_id": queue_id, "from_offset": due[0].queue_offset, "to_offset": due[-1].queue_offset}
        return {row.queue_offset for row in await batch.read(TAKE_RECALLS, asked)}


RELEASES = Releases()


def _due_in_order(entries: Sequence[Row], level: int) -> list[Row]:
    """The entries up to the first that is not due: a level is first in, first out."""
    return list(takewhile(lambda entry: _due_of(entry.due_ms, level, entry.now) <= entry.now, entries))


async def _publish(batch: Batch, publications: list[Publication]) -> None:
    await reappend.keep_near(batch, publications)
    for publication in publications:
        await publish(batch, publication)


def _of_timer(timer: Row) -> Publication:
    return Publication(
        message_id=timer.message_id,
        topic_id=timer.topic_id,
        queue_id=timer.queue_id,
        log_segment=timer.log_segment,
        log_offset=timer.log_offset,
        tags_code=timer.tags_code,
        reconsume_times=timer.reconsume_times,
    )


def _of_entry(entry: Row) -> Publication:
    """The entry back at its real topic and queue, with its tag code, without its delay."""
    return Publication(
        message_id=None,
        topic_id=entry.real_topic_id,
        queue_id=entry.real_queue_id,
        log_segment=entry.log_segment,
        log_offset=entry.log_offset,
        tags_code=entry.real_tags_code,
        reconsume_times=entry.reconsume_times,
    )
