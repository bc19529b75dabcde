"""The threads in which synchronous works ask the cells."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from store.process import runtime

Result = TypeVar("Result")

# Works that ask one cell at a time.
MAX_ASKED_AT_ONCE = 8


class Asking:
    """The threads that ask one cell: one that hangs keeps those of the others free."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MAX_ASKED_AT_ONCE, thread_name_prefix=f"ask {runtime.here().name}")

    def begin(self, work: Callable[[], Result]) -> Future[Result]:
        """Has a thread do a work in the context of the caller."""
        return self._threads.submit(copy_context().run, work)

    async def close(self) -> None:
        """Lets the threads end with what they do."""
        self._threads.shutdown(wait=False, cancel_futures=True)
