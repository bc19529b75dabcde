"""The tasks that answer checks, beside the one that fetches them; `mqbroker_client.executor` has it for threads."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import ParamSpec, TypeAlias

log = logging.getLogger(__name__)

Given = ParamSpec("Given")
Work: TypeAlias = "asyncio.Task[int]"


class AsyncCheckExecutor:
    """As `CheckExecutor`, of tasks: so many run at once, and up to `waiting` wait for their turn."""

    def __init__(self, tasks: int = 5, waiting: int = 2_000) -> None:
        if tasks < 1 or waiting < 0:
            raise ValueError("a check executor has at least one task, and room for no fewer than 0 that wait")
        self.tasks, self.waiting = tasks, waiting
        self._room = asyncio.BoundedSemaphore(tasks + waiting)
        self._turns = asyncio.Semaphore(tasks)
        self._works: set[asyncio.Task[int]] = set()

    async def begin(self, work: Callable[Given, Awaitable[int]], *given: Given.args, **more: Given.kwargs) -> Work:
        """Has a task do this; returns when there is room for it."""
        await self._room.acquire()

        async def run() -> int:
            async with self._turns:
                return await work(*given, **more)

        begun = asyncio.get_running_loop().create_task(run())
        self._works.add(begun)
        begun.add_done_callback(self._has_ended)
        return begun

    async def close(self) -> None:
        """Cancels the checks that run or wait: they are asked again later."""
        for work in list(self._works):
            work.cancel()
        await asyncio.gather(*self._works, return_exceptions=True)

    def _has_ended(self, work: Work) -> None:
        self._works.discard(work)
        self._room.release()
        if not work.cancelled() and (error := work.exception()) is not None:
            log.error("a check was not answered, and is asked again", exc_info=error)


async def ended(works: Collection[Work], timeout_seconds: float | None = None) -> None:
    """Returns when all of these have ended, or behind the time."""
    if works:
        await asyncio.wait(works, timeout=timeout_seconds)
