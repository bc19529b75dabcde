"""Fences: a fenced cell takes no writes while topics leave it; afterwards its sessions know which topics have left.

A fence raises the epoch of the cell, makes sessions that begin from then on read-only, and ends all earlier sessions. A
fence has a time limit: after it, any process that connects ends the fence, unless the run that made the fence has begun
a step during which nothing may be written (`HOLD_FENCE`). The process and the run update the same row of
`cell_identity`, so that one of them comes first.
"""

from collections.abc import Iterable

import structlog
from psycopg.sql import SQL, Composed, Identifier, Literal

from store.db.outcomes import GUARD
from store.db.patience import PatientAsyncConnection
from store.db.statements import Statement
from store.process import runtime
from store.process.departed import Departed
from store.process.runtime import Runtime
from store.rows import CellIdentity, Fenced, Ousted

logger = structlog.stdlib.get_logger(__name__)


IDENTIFY_CELL = Statement(__file__, "identify_cell", CellIdentity)
FENCE_CELL = Statement(__file__, "fence_cell", Fenced)
HOLD_FENCE = Statement(__file__, "hold_fence", one=int)
LIFT_FENCE = Statement(__file__, "lift_fence", one=int)
SET_DEPARTED = Statement(__file__, "set_departed")
OUST_SESSIONS = Statement(__file__, "oust_sessions", Ousted)
OUST_MOVERS = Statement(__file__, "oust_movers", Ousted)

# The refusal of writes when the reason of the fence is unknown, for example while the control is away.
FENCED = "The cell {} takes no writes while topics leave it: nothing was stored, try again in a second."
# The application name of sessions of the run that moves topics: they may write, and the fence does not end them.
MOVER = "mqbroker-move"
WRITES = SQL("SET default_transaction_read_only = off")
DROP_GUARD = SQL("ALTER TABLE commit_log DROP CONSTRAINT IF EXISTS {}").format(Identifier(GUARD))


def close(database: str) -> Composed:
    """The statement that makes new sessions of a database read only."""
    return SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(Identifier(database))


def reopen(database: str) -> Composed:
    """The statement that lets new sessions of a database write again."""
    return SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(Identifier(database))


def guard(topic_ids: Iterable[int]) -> Composed:
    """The statement that makes a cell refuse messages of topics that have left it. Existing rows stay."""
    return SQL("ALTER TABLE commit_log ADD CONSTRAINT {} CHECK (topic_id <> ALL ({}::integer[])) NOT VALID").format(
        Identifier(GUARD), Literal(sorted(topic_ids))
    )


async def heed(session: PatientAsyncConnection, identity: CellIdentity, cell: Runtime) -> None:
    """Reads, in a new session, which topics have left a cell and why it is fenced. Ends a fence whose time is over."""
    ended = await _end(session, cell) if identity.is_over else None
    session.epoch = ended or identity.epoch
    cell.fence = await _reason(session, cell) if identity.is_fenced and ended is None else ""
    if session.epoch > cell.departed.epoch:
        of_it = frozenset(identity.departed), frozenset(identity.departed_queues)
        cell.departed = Departed(session.epoch, *of_it)


async def _reason(session: PatientAsyncConnection, cell: Runtime) -> str:
    explain = runtime.current().explain
    reason = "" if explain is None else await explain(session, cell)
    return reason or FENCED.format(cell.name)


async def _end(session: PatientAsyncConnection, cell: Runtime) -> int | None:
    """Ends a fence and returns the new epoch; None if the run that made the fence holds it.

    This session may write from now on. Sessions that began during the fence are closed at their first write.
    """
    await session.execute(WRITES)
    async with session.transaction():
        lifted = await (await session.execute(LIFT_FENCE.text.encode(), {"by_its_run": False})).fetchone()
        if lifted is not None:
            await session.execute(reopen(session.info.dbname))
            logger.warning("a fence was ended whose time was over", cell=cell.name)
    return None if lifted is None else int(lifted[0])
