"""Renewals: the messages of timers are appended again before their segment goes, as often as it takes."""

import uuid
from dataclasses import dataclass

from store import copies, groupcommit, retention
from store.batch import Batch, Kind, Pending
from store.statements import Statement

LOCK_OLD_TIMERS = Statement(__file__, "lock_old_timers")
MOVE_TIMERS = Statement(__file__, "move_timers")

MAX_PER_BATCH = 500
FIRST_ID = uuid.UUID(int=0)


@dataclass(frozen=True, slots=True)
class Renewal:
    """One step of the walk through the timers: up to which segment the log goes, and the last timer seen."""

    leaving_id: int
    after_id: uuid.UUID


async def run() -> int:
    """Moves the timers off the log that goes next; gives their number. Nothing goes while one of them is left."""
    leaving_id = await retention.leaving()
    if leaving_id is None:
        return 0
    moved = 0
    after_id: uuid.UUID | None = FIRST_ID
    while after_id is not None:
        renewed, after_id = await groupcommit.submit(TIMER_RENEWALS, Renewal(leaving_id, after_id))
        moved += renewed
    return moved


class TimerRenewals(Kind[Renewal]):
    """A renewal appends messages again and moves their timers, in one transaction."""

    async def decide(self, batch: Batch, pending: list[Pending[Renewal]]) -> None:
        for one in pending:
            one.outcome = await self._renew(batch, one.request)

    async def _renew(self, batch: Batch, renewal: Renewal) -> tuple[int, uuid.UUID | None]:
        """How many were moved, and where the walk goes on."""
        asked = {"leaving_id": renewal.leaving_id, "after_id": renewal.after_id, "max_timers": MAX_PER_BATCH}
        timers = await batch.read(LOCK_OLD_TIMERS, asked)
        if not timers:
            return 0, None
        offsets = await copies.append_again(batch, {(timer.log_segment, timer.log_offset) for timer in timers})
        moved = [timer for timer in timers if (timer.log_segment, timer.log_offset) in offsets]
        ids = [timer.id for timer in moved]
        places = [offsets[timer.log_segment, timer.log_offset] for timer in moved]
        await batch.read(MOVE_TIMERS, {"segment_id": batch.segment_id, "id": ids, "log_offset": places})
        # What was too much for one statement comes with the next step, from the same place on.
        return len(moved), timers[-1].id if len(moved) == len(timers) else renewal.after_id


TIMER_RENEWALS = TimerRenewals()
