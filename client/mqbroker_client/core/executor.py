"""The threads that answer checks, besides the thread that fetches them: RocketMQ's `checkExecutor`."""

import logging
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import ParamSpec, TypeAlias

log = logging.getLogger(__name__)

Given = ParamSpec("Given")
#: A check that runs, or that waits for a thread.
Work: TypeAlias = Future[int]


class CheckExecutor:
    """A pool of `threads` threads, with up to `waiting` checks that wait for a thread; `begin` blocks beyond that.

    The default size is taken from RocketMQ's example. One executor may serve several pollers and listeners; create it
    after a fork. With an executor, a check function runs in several threads at once.
    """

    def __init__(self, threads: int = 5, waiting: int = 2_000) -> None:
        if threads < 1 or waiting < 0:
            raise ValueError("a check executor has at least one thread, and room for no fewer than 0 that wait")
        self.threads, self.waiting = threads, waiting
        self._room = threading.BoundedSemaphore(threads + waiting)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="checks")

    def begin(self, work: Callable[Given, int], *given: Given.args, **more: Given.kwargs) -> Work:
        """Lets a thread run this function; returns when there is room for it. Raises RuntimeError after `close`."""

        def run() -> int:
            try:
                return work(*given, **more)
            except Exception:
                log.exception("a check was not answered, and is asked again")
                raise
            finally:
                self._room.release()

        self._room.acquire()
        try:
            return self._pool.submit(run)
        except RuntimeError:
            self._room.release()
            raise

    def close(self) -> None:
        """Waits for the running checks. The broker asks later about the checks that have not begun."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def ended(works: Collection[Work], timeout_seconds: float | None = None) -> None:
    """Returns when all these checks have ended, or after the time limit."""
    wait(works, timeout_seconds)
