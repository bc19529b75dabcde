"""Renewals: the messages of timers are appended again before their segment goes, as often as it takes."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.rows import LockedTimer, OldTimers
from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.db import connections
from store.db.statements import Statement
from store.segments import reappend, retention

FIND_OLD_TIMERS = Statement(__file__, "find_old_timers", OldTimers)
LOCK_OLD_TIMERS = Statement(__file__, "lock_old_timers", LockedTimer)
MOVE_TIMERS = Statement(__file__, "move_timers")

# Looking at so many takes some 15 ms, and holds nothing up.
MAX_PER_LOOK = 10_000
MAX_PER_BATCH = 500
FIRST_ID = uuid.UUID(int=0)


@dataclass(frozen=True, slots=True)
class Renewal:
    """Timers that were found in the log that goes, up to which segment."""

    leaving_id: int
    ids: Sequence[uuid.UUID]


async def run() -> int:
    """Moves the timers off the log that goes next; gives their number. Nothing goes while one of them is left."""
    leaving_id = await retention.leaving()
    if leaving_id is None:
        return 0
    moved = 0
    after_id: uuid.UUID | None = FIRST_ID
    while after_id is not None:
        asked = {"leaving_id": leaving_id, "after_id": after_id, "max_timers": MAX_PER_LOOK}
        [seen] = await connections.read(FIND_OLD_TIMERS, asked)
        for start in range(0, len(seen.old), MAX_PER_BATCH):
            moved += await _move(leaving_id, seen.old[start : start + MAX_PER_BATCH])
        after_id = seen.last_id
    return moved


async def _move(leaving_id: int, ids: Sequence[uuid.UUID]) -> int:
    """Moves these; what is too much for one statement comes with the next."""
    moved = 0
    while ids:
        renewed, ids = await writer.submit(TIMER_RENEWALS, Renewal(leaving_id, ids))
        moved += renewed
    return moved


class TimerRenewals(Kind[Renewal]):
    """A renewal appends messages again and moves their timers, in one transaction."""

    async def decide(self, batch: Batch, pending: list[Pending[Renewal]]) -> None:
        for one in pending:
            one.outcome = await self._renew(batch, one.request)

    async def _renew(self, batch: Batch, renewal: Renewal) -> tuple[int, list[uuid.UUID]]:
        """How many were moved, and which are left to be."""
        asked = {"leaving_id": renewal.leaving_id, "ids": list(renewal.ids)}
        timers = await batch.read(LOCK_OLD_TIMERS, asked)
        if not timers:
            return 0, []
        offsets = await reappend.append_again(batch, {(timer.log_segment, timer.log_offset) for timer in timers})
        moved = [timer for timer in timers if (timer.log_segment, timer.log_offset) in offsets]
        ids = [timer.id for timer in moved]
        places = [offsets[timer.log_segment, timer.log_offset] for timer in moved]
        await batch.read(MOVE_TIMERS, {"segment_id": batch.segment_id, "id": ids, "log_offset": places})
        return len(moved), [timer.id for timer in timers if (timer.log_segment, timer.log_offset) not in offsets]


TIMER_RENEWALS = TimerRenewals()
