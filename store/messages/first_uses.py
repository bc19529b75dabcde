"""First uses of topics and groups: checks only a few requests at a time, because a first use reads every cell."""

import asyncio
from collections.abc import Awaitable, Callable

from store.process import runtime

AT_ONCE = 4


class FirstUses:
    """Limits how many first uses a process checks at a time.

    Of thousands at the same time, the first few create the topic for all. Without the limit, their look-ups in every
    cell would use up the connection pools.
    """

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(AT_ONCE)


async def at_first_use(is_first_use: Callable[[], Awaitable[bool]], require: Callable[[], Awaitable[None]]) -> None:
    """Waits for its turn, then calls `require` if this is still the first use of the topic or group."""
    if not await is_first_use():
        return
    async with runtime.control(FirstUses).turns:
        # An earlier request may have created the topic or group meanwhile.
        if await is_first_use():
            await require()
