"""The tasks that answer checks, beside the task that fetches them; `mqbroker_client.core.executor` has threads."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import ParamSpec, TypeAlias

log = logging.getLogger(__name__)

Given = ParamSpec("Given")
Work: TypeAlias = "asyncio.Task[int]"


class AsyncCheckExecutor:
    """Runs checks in tasks: a fixed number at once, while up to `waiting` further checks wait. `CheckExecutor` does the
    same with threads.
    """

    def __init__(self, tasks: int = 5, waiting: int = 2_000) -> None:
        if tasks < 1 or waiting < 0:
            raise ValueError("a check executor has at least one task, and room for no fewer than 0 that wait")
        self.tasks, self.waiting = tasks, waiting
        self._room = asyncio.BoundedSemaphore(tasks + waiting)
        self._turns = asyncio.Semaphore(tasks)
        self._works: set[asyncio.Task[int]] = set()

    async def begin(self, work: Callable[Given, Awaitable[int]], *given: Given.args, **more: Given.kwargs) -> Work:
        """Runs `work` in a task; returns when there is room for the task."""

        async def run() -> int:
            try:
                async with self._turns:
                    return await work(*given, **more)
            except Exception:
                log.exception("a check was not answered, and is asked again")
                raise
            finally:
                self._room.release()

        await self._room.acquire()
        begun = asyncio.get_running_loop().create_task(run())
        # The event loop holds only a weak reference to the task, so it is kept here.
        self._works = {begun, *(one for one in self._works if not one.done())}
        return begun

    async def close(self) -> None:
        """Cancels the checks that run or wait: they are asked again later."""
        for work in list(self._works):
            work.cancel()
        await asyncio.gather(*self._works, return_exceptions=True)


async def ended(works: Collection[Work], timeout_seconds: float | None = None) -> None:
    """Returns when all checks have ended, or after the timeout."""
    if works:
        await asyncio.wait(works, timeout=timeout_seconds)
