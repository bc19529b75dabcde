"""Reappends the messages of timers before their segment is dropped; again for each segment that a timer outlives."""

import uuid
from collections.abc import Sequence
from typing import Self

from scheduling.rows import LockedTimer, ScanStep
from store.commit import reappend, writer
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.db import connections
from store.db.statements import Statement
from store.segments import retention

FIND_OLD_TIMERS = Statement(__file__, "find_old_timers", ScanStep)
LOCK_OLD_TIMERS = Statement(__file__, "lock_old_timers", LockedTimer)
MOVE_TIMERS = Statement(__file__, "move_timers")

# Timers that one step of the scan reads, in about 15 ms.
MAX_PER_STEP = 10_000
MAX_PER_BATCH = 500
FIRST_ID = uuid.UUID(int=0)


async def run() -> int:
    """Moves timers off the segment that retention drops next, and returns how many. Retention waits for the move."""
    leaving_id = await retention.leaving()
    if leaving_id is None:
        return 0
    moved = 0
    after_id: uuid.UUID | None = FIRST_ID
    while after_id is not None:
        parameters = {"leaving_id": leaving_id, "after_id": after_id, "max_timers": MAX_PER_STEP}
        [step] = await connections.read(FIND_OLD_TIMERS, parameters)
        for start in range(0, len(step.old), MAX_PER_BATCH):
            moved += await _move(leaving_id, step.old[start : start + MAX_PER_BATCH])
        after_id = step.last_id
    return moved


async def _move(leaving_id: int, ids: Sequence[uuid.UUID]) -> int:
    """Moves these timers, in as many batches as their bodies need; returns the number of moved timers."""
    moved = 0
    while ids:
        done, ids = await writer.run(TimerReappend(leaving_id, ids))
        moved += done
    return moved


class TimerReappend(Operation[tuple[int, Sequence[uuid.UUID]]]):
    """Appends messages again and moves their timers, in one transaction. Result: the number, and the ids left over."""

    __slots__ = ("leaving_id", "timer_ids")

    def __init__(self, leaving_id: int, timer_ids: Sequence[uuid.UUID]) -> None:
        super().__init__()
        self.leaving_id = leaving_id
        self.timer_ids = timer_ids

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        for one in operations:
            one.result = await one._move(batch)

    async def _move(self, batch: Batch) -> tuple[int, list[uuid.UUID]]:
        timers = await batch.read(LOCK_OLD_TIMERS, {"leaving_id": self.leaving_id, "ids": list(self.timer_ids)})
        if not timers:
            return 0, []
        offsets = await reappend.append_again(batch, {(timer.log_segment, timer.log_offset) for timer in timers})
        moved = [timer for timer in timers if (timer.log_segment, timer.log_offset) in offsets]
        ids = [timer.id for timer in moved]
        log_offsets = [offsets[timer.log_segment, timer.log_offset] for timer in moved]
        await batch.read(MOVE_TIMERS, {"segment_id": batch.segment_id, "id": ids, "log_offset": log_offsets})
        return len(moved), [timer.id for timer in timers if (timer.log_segment, timer.log_offset) not in offsets]
