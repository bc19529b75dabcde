"""The event loop of a process whose own code is not asynchronous: a Celery worker, a management command."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from store.process import runtime

Result = TypeVar("Result")


class EventLoop:
    """An event loop in its own thread. All work of a process shares the loop, its connections and its group commit."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="event loop", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Result], limit_seconds: float) -> Result:
        """Runs a coroutine in this loop, as the function `run` does."""
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, limit_seconds), self._loop).result()


def run(work: Coroutine[Any, Any, Result], limit_seconds: float) -> Result:
    """Runs a coroutine in the event loop of this process's runtime and returns its result; callable from any thread.

    Raises TimeoutError when the work takes longer than the limit; the work is cancelled then.
    """
    return runtime.control(EventLoop).run(work, limit_seconds)
