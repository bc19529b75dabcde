"""First uses of topics and groups: what each of them requires is looked for by a few of them at a time."""

import asyncio
from collections.abc import Awaitable, Callable

from store.process import runtime

AT_ONCE = 4


class FirstUses:
    """The first uses that a process looks at: of thousands at once the first few make what the others use.

    A look-up of each in every cell would keep the pools from all other requests.
    """

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(AT_ONCE)


async def at_first_use(is_first_use: Callable[[], Awaitable[bool]], require: Callable[[], Awaitable[None]]) -> None:
    """Does what a first use of a topic or a group requires, in its turn; nothing where it is none any more."""
    if not await is_first_use():
        return
    async with runtime.control(FirstUses).turns:
        # One of those before may have made it meanwhile.
        if await is_first_use():
            await require()
