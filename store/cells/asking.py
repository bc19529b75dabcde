"""The threads in which synchronous functions query the cells."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from store.process import runtime

Result = TypeVar("Result")

# The maximum number of functions that query one cell at the same time; others wait.
MAX_ASKED_AT_ONCE = 8


class Asking:
    """The threads that ask one cell. A cell that hangs does not occupy the threads of other cells."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MAX_ASKED_AT_ONCE, thread_name_prefix=f"ask {runtime.here().name}")

    def begin(self, work: Callable[[], Result]) -> Future[Result]:
        """Runs a function in one of the threads, with the context variables of the caller."""
        return self._threads.submit(copy_context().run, work)

    async def close(self) -> None:
        """Ends the threads after their current calls; waiting calls are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)
