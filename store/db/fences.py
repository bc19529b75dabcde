"""Fences: a cell that takes no writes while topics leave it, and what its sessions know of topics that have left.

A fence raises the epoch of the cell, has each session that begins from then on write nothing, and ends all others. It
has a time: once that is over, a process that connects ends it, unless the run that made it has begun what must not be
met by writes (`HOLD_FENCE`). Both are decided by the one row of `cell_identity`, which is updated under its lock.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import structlog
from psycopg.sql import SQL, Composed, Identifier, Literal

from store.db.outcomes import GUARD
from store.db.patience import PatientAsyncConnection
from store.db.statements import Statement
from store.process import runtime
from store.process.departed import Departed
from store.process.runtime import Runtime

logger = structlog.stdlib.get_logger(__name__)


class CellIdentity(NamedTuple):
    """Which cell a database is, how often it was fenced, and what it had that is another cell's now.

    `is_over`: it is fenced, for longer than it was to be.
    """

    cell_id: int
    epoch: int
    is_fenced: bool
    is_over: bool
    departed: list[int]
    departed_queues: list[int]


class Fenced(NamedTuple):
    """The epoch of a fence, and when it was made, by the database's clock."""

    epoch: int
    fenced_at: datetime


class Held(NamedTuple):
    """The epoch of a fence that stands until the run that made it ends it."""

    epoch: int


class Lifted(NamedTuple):
    """The epoch behind a fence."""

    epoch: int


class Ousted(NamedTuple):
    """A session that is still there, and whether its end could be asked for."""

    pid: int
    is_asked: bool


IDENTIFY_CELL = Statement(__file__, "identify_cell", CellIdentity)
FENCE_CELL = Statement(__file__, "fence_cell", Fenced)
HOLD_FENCE = Statement(__file__, "hold_fence", Held)
LIFT_FENCE = Statement(__file__, "lift_fence", Lifted)
LIFT_OLD_FENCE = Statement(__file__, "lift_old_fence", Lifted)
SET_DEPARTED = Statement(__file__, "set_departed")
OUST_SESSIONS = Statement(__file__, "oust_sessions", Ousted)
OUST_MOVERS = Statement(__file__, "oust_movers", Ousted)

# With what a caller is answered where no move is known that fences the cell, as while the control is away.
FENCED = "The cell {} takes no writes while topics leave it: nothing was stored, try again in a second."
# The sessions of the run that moves topics: they write behind the fence, and are not ended by it.
MOVER = "mqbroker-move"
WRITES = SQL("SET default_transaction_read_only = off")
DROP_GUARD = SQL("ALTER TABLE commit_log DROP CONSTRAINT IF EXISTS {}").format(Identifier(GUARD))


def close(database: str) -> Composed:
    """Has each session that begins from now on in a database read only."""
    return SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(Identifier(database))


def reopen(database: str) -> Composed:
    """Has each session that begins from now on in a database write again."""
    return SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(Identifier(database))


def guard(topic_ids: Iterable[int]) -> Composed:
    """Has a cell refuse the messages of topics that have left it; rows that there are stay."""
    return SQL("ALTER TABLE commit_log ADD CONSTRAINT {} CHECK (topic_id <> ALL ({}::integer[])) NOT VALID").format(
        Identifier(GUARD), Literal(sorted(topic_ids))
    )


async def heed(session: PatientAsyncConnection, identity: CellIdentity, cell: Runtime) -> None:
    """Has a process know what has left a cell, and why the cell takes no writes, by a new session there; ends a fence
    whose time is over."""
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
    """Ends a fence, unless the run that made it goes on; returns the epoch. This session writes from now on, and those
    that began behind the fence are closed by their first write."""
    await session.execute(WRITES)
    async with session.transaction():
        lifted = await (await session.execute(LIFT_OLD_FENCE.text.encode())).fetchone()
        if lifted is not None:
            await session.execute(reopen(session.info.dbname))
            logger.warning("a fence was ended whose time was over", cell=cell.name)
    return None if lifted is None else int(lifted[0])
