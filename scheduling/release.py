"""Release: makes due messages of the delay levels and the timers visible in their real topic and queue.

The scheduler's progress and the new entries commit together: a restart repeats no release, and a failed release is
tried again. Due times are compared with the database's clock. Several processes may release at the same time: the lock
of the progress, and the delete of a timer's row, make each release happen once.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Self

from scheduling import delays, lateness
from scheduling.publish import Publication, publish_all
from scheduling.rows import DueEntry, DueTimer, LevelHead, NextTimer
from store.commit import writer
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.db import connections
from store.db.statements import Statement
from store.naming import topics
from store.process import runtime
from store.reading import progress
from store.rows import PositionRow

DELAY_LEVEL_HEADS = Statement(__file__, "delay_level_heads", LevelHead)
NEXT_TIMER = Statement(__file__, "next_timer", NextTimer)
TAKE_DUE_OF_LEVEL = Statement(__file__, "take_due_of_level", DueEntry)
TAKE_RECALLS = Statement(__file__, "take_recalls", one=int)
TAKE_TIMERS = Statement(__file__, "take_timers", DueTimer)

# Parameters of the statements that read the delay levels' queues and the scheduler's progress in these queues.
QUEUES_OF_LEVELS = {"scheduler": progress.SCHEDULER, "schedule_topic": topics.SCHEDULE}
MAX_PER_BATCH = 1000
# The shortest pause between two reads of due messages. The average lateness is half of this pause.
PAUSE_SECONDS = 0.010
# How long a run tries to release messages that another process has locked. Then the other process or the next tick
# releases them.
LOCKED_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Due:
    """The level queues with due entries, whether timers are due, and the earliest due time of all messages."""

    now: datetime
    level_queues: tuple[int, ...]
    timers: bool
    next_at: datetime | None

    @property
    def is_now(self) -> bool:
        return self.timers or bool(self.level_queues)

    def seconds_to_next(self, otherwise: float) -> float:
        """The time until the next message is due; `otherwise` when none waits."""
        return otherwise if self.next_at is None else (self.next_at - self.now).total_seconds()


async def run(ahead_seconds: float = 0) -> int:
    """Releases everything that is due or becomes due within `ahead_seconds`; returns the number released.

    1. Read which messages are due, and the time of the next message.
    2. While messages are due, release a batch and read again. A batch releases nothing when another process holds the
       locks for a release or a recall.
    3. Sleep until the next message is due, or for PAUSE_SECONDS, and go on with 1.
    4. After `ahead_seconds`, or if nothing becomes due within them, write the counts of lateness and end. Beat's ticks
       are two seconds apart, so a run that looks ahead to the next tick releases within milliseconds.
    """
    clock = asyncio.get_running_loop().time
    began = clock()
    due = await find_due()
    released = 0
    while True:
        while due.is_now and (moved := await writer.run(Release(due))):
            released += moved
            due = await find_due()
        left = began + max(ahead_seconds, LOCKED_SECONDS if due.is_now else 0) - clock()
        wait = due.seconds_to_next(left)
        if left <= 0 or wait >= left:
            await lateness.keep()
            return released
        await asyncio.sleep(max(wait, PAUSE_SECONDS))
        due = await find_due()


async def stalled(late_seconds: float, last_seen: datetime | None) -> tuple[bool, datetime | None]:
    """Whether no process releases: the next message is overdue by `late_seconds`, and its due time is still
    `last_seen`.

    Also returns the due time of the next message, which the caller passes as `last_seen` the next time. The due time
    changes while another process releases a backlog.
    """
    due = await find_due()
    late = due.next_at is not None and due.next_at < due.now - timedelta(seconds=late_seconds)
    return late and due.next_at == last_seen, due.next_at


async def find_due() -> Due:
    """Reads which messages are due. The database's clock is read after the heads, as `delays.corrected` requires."""
    heads = await connections.read(DELAY_LEVEL_HEADS, QUEUES_OF_LEVELS)
    [timer] = await connections.read(NEXT_TIMER)
    times = {head.queue_id: _due_at(head.due_ms, head.queue_id, timer.now) for head in heads}
    waiting = [*times.values(), *([timer.due_at] if timer.due_at is not None else [])]
    return Due(
        now=timer.now,
        level_queues=tuple(queue for queue, due_at in times.items() if due_at <= timer.now),
        timers=timer.due_at is not None and timer.due_at <= timer.now,
        next_at=min(waiting, default=None),
    )


def _due_at(due_ms: int, queue_id: int, now: datetime) -> datetime:
    return delays.corrected(delays.time_of(due_ms), delays.level_of(queue_id), now)


def _count(batch: Batch, queue_id: int, late: list[timedelta]) -> None:
    """Counts these releases after the commit, so that the lateness includes the time of the write."""
    loop = asyncio.get_running_loop()
    taken_at = loop.time()

    def visible() -> None:
        written_ms = (loop.time() - taken_at) * 1000
        lateness.note(queue_id, (one.total_seconds() * 1000 + written_ms for one in late))

    batch.after_commit(visible)


class Release(Operation[int]):
    """Releases due timers and level entries, and moves the scheduler's progress. A batch runs its releases as one."""

    __slots__ = ("due",)

    def __init__(self, due: Due) -> None:
        super().__init__()
        self.due = due

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        level_queues = sorted({queue for one in operations for queue in one.due.level_queues})
        released = 0
        if any(one.due.timers for one in operations):
            released += await _timers(batch)
        if level_queues:
            released += await _levels(batch, level_queues)
        for one in operations:
            one.result = released


async def _timers(batch: Batch) -> int:
    taken = await batch.read(TAKE_TIMERS, {"now": batch.now, "max_timers": MAX_PER_BATCH})
    departed = runtime.here().departed
    timers = [timer for timer in taken if not departed.has(timer.topic_id, timer.queue_id)]
    _count(batch, lateness.TIMERS, [timer.now - timer.due_at for timer in timers])
    await publish_all(batch, [_of_timer(timer) for timer in sorted(timers, key=lambda row: (row.due_at, row.id))])
    return len(taken)


async def _levels(batch: Batch, level_queues: list[int]) -> int:
    """Releases messages of levels that are not locked: a process that was stopped only delays the levels that it has
    locked.
    """
    schedule = await topics.own(topics.SCHEDULE, queues=1)
    queues = await progress.try_lock(batch, progress.SCHEDULER, [(schedule.id, queue) for queue in level_queues])
    released = 0
    for position in await progress.positions(batch, progress.SCHEDULER, queues):
        released += await _level(batch, position)
    return released


async def _level(batch: Batch, position: PositionRow) -> int:
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
    due = _due_in_order(entries, position.queue_id)
    recalled = await _recalled(batch, position.queue_id, due)
    departed = runtime.here().departed
    own = [entry for entry in due if not departed.has(entry.real_topic_id, entry.real_queue_id)]
    await publish_all(batch, [_of_entry(entry) for entry in own if entry.queue_offset not in recalled])
    if due:
        queue = (position.topic_id, position.queue_id)
        _count(batch, position.queue_id, [entry.now - delays.time_of(entry.due_ms) for entry in own])
        progress.move(batch, progress.SCHEDULER, queue, (position.move or 0) + 1, due[-1].queue_offset + 1)
    return len(due)


async def _recalled(batch: Batch, queue_id: int, due: list[DueEntry]) -> set[int]:
    """The offsets of the due entries that were recalled; deletes their rows of `recall`."""
    if not due:
        return set()
    parameters = {"queue_id": queue_id, "from_offset": due[0].queue_offset, "to_offset": due[-1].queue_offset}
    return set(await batch.read(TAKE_RECALLS, parameters))


def _due_in_order(entries: Sequence[DueEntry], queue_id: int) -> list[DueEntry]:
    """The entries before the first entry that is not due, because a level releases in order."""
    return list(takewhile(lambda entry: _due_at(entry.due_ms, queue_id, entry.now) <= entry.now, entries))


def _of_timer(timer: DueTimer) -> Publication:
    return Publication(
        message_id=timer.message_id,
        topic_id=timer.topic_id,
        queue_id=timer.queue_id,
        log_segment=timer.log_segment,
        log_offset=timer.log_offset,
        tags_code=timer.tags_code,
        reconsume_times=timer.reconsume_times,
        due_at=timer.due_at,
    )


def _of_entry(entry: DueEntry) -> Publication:
    """The publication of an entry in its real topic and queue, with its real tags code."""
    return Publication(
        message_id=None,
        topic_id=entry.real_topic_id,
        queue_id=entry.real_queue_id,
        log_segment=entry.log_segment,
        log_offset=entry.log_offset,
        tags_code=entry.real_tags_code,
        reconsume_times=entry.reconsume_times,
    )
