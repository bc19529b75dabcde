"""Operations that wait for a lock of another session: how long they are repeated, and the refusal after that."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import structlog

from store.commit.pending import Pending
from store.db import connections
from store.db.connections import Connection
from store.db.statements import Statement
from store.errors import SystemBusy
from store.rows import Holder

logger = structlog.stdlib.get_logger(__name__)

# The time counts from the submission. An earlier pipelined batch took at most 0.3 s, and the last attempt takes at most
# 1 s, so each request is answered within 5 s.
LOCKED_SECONDS = 3.0
# An attempt that takes longer is waiting for its lock; the wait for the lock ends after 0.25 s.
LOOK_AFTER_SECONDS = 0.1
MAX_HOLDERS = 3


FIND_HOLDERS = Statement(__file__, "find_holders", Holder)


def is_late(pending: Pending) -> bool:
    """Whether an operation that has met a lock has no time left for another attempt."""
    return asyncio.get_running_loop().time() > pending.submitted_at + LOCKED_SECONDS


def refuse_late(pending: Sequence[Pending]) -> list[Pending]:
    """Refuses the operations that have no time left, with the reason. Returns the others."""
    for one in (late := [one for one in pending if is_late(one)]):
        one.resolve(connections.locked(one.holders))
    if late:
        logger.warning("another session holds a lock", operations=len(late), holders=late[0].holders)
    return [one for one in pending if one not in late]


@contextlib.asynccontextmanager
async def looking(
    pending: Sequence[Pending], connection: Connection | None, looks: set[asyncio.Task[None]]
) -> AsyncIterator[None]:
    """Finds out which sessions hold the lock that an attempt within the block waits for.

    The task that looks is in `looks` until it has ended, which may be after the block.
    """
    if connection is None:
        yield
        return
    look = asyncio.create_task(_look(pending, connection.pgconn.backend_pid), name="look for the holder of a lock")
    looks.difference_update([earlier for earlier in looks if earlier.done()])
    looks.add(look)
    try:
        yield
    finally:
        look.cancel()


async def _look(pending: Sequence[Pending], pid: int) -> None:
    await asyncio.sleep(LOOK_AFTER_SECONDS)
    with contextlib.suppress(SystemBusy):
        found = await connections.read(FIND_HOLDERS, {"pid": pid, "max_rows": MAX_HOLDERS})
        names = [f"PostgreSQL's process {one.pid}, application {one.application!r}" for one in found]
        for one in pending if names else ():
            one.holders = "; ".join(names)
