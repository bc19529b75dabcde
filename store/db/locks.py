"""Advisory locks of PostgreSQL that end with their transaction: a process that is killed leaves none."""

from store.db.statements import Statement

SHARE_LOCK = Statement(__file__, "share_lock")
TAKE_LOCKS = Statement(__file__, "take_locks")
TRY_LOCK_NAME = Statement(__file__, "try_lock_name", one=bool)
