"""Counts and deletes timers of topics that have left a database."""

from scheduling.rows import PurgedTimers
from store.db.statements import Statement

COUNT_TIMERS_OF = Statement(__file__, "count_timers_of", one=int)
PURGE_TIMERS = Statement(__file__, "purge_timers", PurgedTimers)
