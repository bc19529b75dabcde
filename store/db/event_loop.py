"""The event loop of a process whose own code is not asynchronous: a Celery worker, a management command."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

_starting = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run(work: Coroutine[Any, Any, Result], limit_seconds: float) -> Result:
    """Runs a coroutine in this process's event loop and gives its result; callable from any thread.

    All work of a process shares one loop, and so its connections and its group commit. Raises TimeoutError when the
    work takes longer than the limit; it is cancelled then.
    """
    future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, limit_seconds), _running_loop())
    return future.result()


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _starting:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="event loop", daemon=True).start()
        return _loop
