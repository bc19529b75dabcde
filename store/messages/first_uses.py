"""First uses of topics and groups: only a few requests at a time check what a first use requires."""

import asyncio
from collections.abc import Awaitable, Callable

from store.process import runtime

AT_ONCE = 4


class FirstUses:
    """The first uses that a process checks at a time. Of thousands at once, the first few create what the others use.

    Without the limit the look-ups of all of them in every cell would occupy the pools of connections.
    """

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(AT_ONCE)


async def at_first_use(is_first_use: Callable[[], Awaitable[bool]], require: Callable[[], Awaitable[None]]) -> None:
    """Calls `require` before the first use of a topic or a group, in turn, if it is still the first use."""
    if not await is_first_use():
        return
    async with runtime.control(FirstUses).turns:
        # An earlier request may have created the topic or group meanwhile.
        if await is_first_use():
            await require()
