"""The cells of the installation, as the control lists them and a process serves them."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog

from store.db import connections, sealing
from store.db.statements import Statement
from store.db.ttl_cache import Key, TtlCache, Value
from store.errors import SystemBusy
from store.process import runtime
from store.process.runtime import Runtime

logger = structlog.stdlib.get_logger(__name__)


class CellFacts(NamedTuple):
    """A cell as processes need it. `url` is as it is stored: `sealing.opened` gives libpq's."""

    id: int
    name: str
    url: str
    takes_topics: bool


# It, and all configuration, is read from the control.
LIST_CELLS = Statement(__file__, "list_cells", CellFacts)


# Less than what is left of a cached value when it is looked up again.
CONTROL_SECONDS = 0.4
# A cell that was added is served after this by a process that meets no topic of it before.
ANEW_SECONDS = 10.0


class Learnt:
    """When this process has last asked which cells there are, by the monotonic clock."""

    def __init__(self) -> None:
        self.at = -ANEW_SECONDS


async def learn_anew() -> None:
    """As `learn`, unless it did so less than ANEW_SECONDS ago."""
    if time.monotonic() - runtime.control(Learnt).at >= ANEW_SECONDS:
        await learn()


async def learn() -> None:
    """Has this process serve each cell that the control lists. Raises SystemBusy while the control is away."""
    found = await connections.read_control(LIST_CELLS)
    runtime.control(Learnt).at = time.monotonic()
    for facts in found:
        if not runtime.serves(facts.id):
            try:
                runtime.current().add(Runtime(facts.id, facts.name, sealing.opened(facts.url)))
            except sealing.SecretUnreadable as problem:
                logger.error("a cell cannot be reached", cell=facts.name, problem=str(problem))


async def or_last(
    cache: TtlCache[Key, Value], key: Key, look_up: Callable[[], Awaitable[Value | None]]
) -> Value | None:
    """What a look-up finds in the configuration, or what it found last, where only the control is away.

    Then nothing of the configuration can have been changed since, and the other cells go on.
    """
    last = cache.last(key)
    if last is None or runtime.is_only():
        return await look_up()
    try:
        async with asyncio.timeout(CONTROL_SECONDS):
            return await look_up()
    except (SystemBusy, TimeoutError):
        return last


async def in_each(work: Callable[[], Awaitable[object]]) -> None:
    """Does a work in each cell, in all of them at once: one that is away does not keep it from the others.

    Raises what it raised in one of them, once it has ended in all.
    """
    with contextlib.suppress(SystemBusy):
        # Those that are known go on.
        await learn_anew()
    if runtime.is_only():
        await work()
        return
    ended = await asyncio.gather(*(_in(cell, work) for cell in runtime.cells()), return_exceptions=True)
    for problem in ended:
        if problem is not None:
            raise problem


async def _in(cell: Runtime, work: Callable[[], Awaitable[object]]) -> None:
    with cell.entered():
        await work()
