"""Operations that a lock of another session keeps from being written: how long they are tried again, and the reason."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import structlog

from store.commit.pending import Pending
from store.db import connections
from store.db.connections import Connection
from store.db.statements import Statement
from store.errors import SystemBusy

logger = structlog.stdlib.get_logger(__name__)

# From its submission on. The pipelined batch before took 0.3 s at most, and the attempt that is under way then takes a
# second at most: each request is answered within 5 s.
LOCKED_SECONDS = 3.0
# An attempt that takes so long waits for its lock by then, which it does for 0.25 s.
LOOK_AFTER_SECONDS = 0.1
MAX_HOLDERS = 3


class Holder(NamedTuple):
    """A session that holds a lock, and the name that its program has given itself."""

    pid: int
    application: str


FIND_HOLDERS = Statement(__file__, "find_holders", Holder)


def is_late(pending: Pending) -> bool:
    """Whether an operation that met a lock is not tried again."""
    return asyncio.get_running_loop().time() > pending.submitted_at + LOCKED_SECONDS


def refuse_late(pending: Sequence[Pending]) -> list[Pending]:
    """Answers the operations that are late with the reason; the other ones are returned."""
    for one in (late := [one for one in pending if is_late(one)]):
        one.resolve(connections.locked(one.holders))
    if late:
        logger.warning("another session holds a lock", operations=len(late), holders=late[0].holders)
    return [one for one in pending if one not in late]


@contextlib.asynccontextmanager
async def looking(pending: Sequence[Pending], connection: Connection | None) -> AsyncIterator[None]:
    """Finds out which sessions hold the lock that an attempt within the block waits for."""
    if connection is None:
        yield
        return
    look = asyncio.create_task(_look(pending, connection.pgconn.backend_pid), name="look for the holder of a lock")
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
