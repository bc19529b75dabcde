"""Timers of topics that have left a database."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from store.db.statements import Statement


class PurgedTimers(NamedTuple):
    """The due time and id of the last timer that was read, and how many timers were deleted."""

    due_at: datetime
    id: UUID
    purged: int


COUNT_TIMERS_OF = Statement(__file__, "count_timers_of", one=int)
PURGE_TIMERS = Statement(__file__, "purge_timers", PurgedTimers)
