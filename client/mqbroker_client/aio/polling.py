"""Checks for producers that the broker cannot call, answered by a task."""

import asyncio

from mqbroker_client.aio.checking import AsyncChecking
from mqbroker_client.aio.checks import AsyncCheck
from mqbroker_client.aio.executor import ended

__all__ = ["AsyncCheck", "AsyncCheckPoller"]


class AsyncCheckPoller(AsyncChecking):
    """A task that fetches due checks and answers them. `CheckPoller` does the same in a thread."""

    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the task in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self.run())

    async def stop(self, *, timeout_seconds: float | None = None) -> None:
        """End the long poll, and stop when the check under way, if any, is answered.

        The broker asks again later about fetched checks that were not begun. A check that takes longer than
        `timeout_seconds` is cancelled, and the broker asks again about it, too.
        """
        self._stopping.set()
        if self._task is None:
            return
        if self._answering:
            await asyncio.wait([self._task], timeout=timeout_seconds)
        await ended(list(self._handed), timeout_seconds)
        for work in self._handed:
            work.cancel()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def run(self) -> None:
        """Fetches and answers checks until the poller is stopped or the task is cancelled."""
        await self._run()
