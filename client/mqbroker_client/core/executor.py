"""The threads that answer checks, beside the one that fetches them: RocketMQ's `checkExecutor`."""

import logging
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import ParamSpec, TypeAlias

log = logging.getLogger(__name__)

Given = ParamSpec("Given")
#: A check that runs, or waits for a thread.
Work: TypeAlias = Future[int]


class CheckExecutor:
    """A pool of `threads`, and up to `waiting` checks that wait for one of them; the next one waits to be taken.

    As large as that of RocketMQ's example. One may serve several pollers and listeners; make it behind a fork. A check
    function runs in several threads at once then.
    """

    def __init__(self, threads: int = 5, waiting: int = 2_000) -> None:
        if threads < 1 or waiting < 0:
            raise ValueError("a check executor has at least one thread, and room for no fewer than 0 that wait")
        self.threads, self.waiting = threads, waiting
        self._room = threading.BoundedSemaphore(threads + waiting)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="checks")

    def begin(self, work: Callable[Given, int], *given: Given.args, **more: Given.kwargs) -> Work:
        """Has a thread do this; returns when there is room for it. Raises RuntimeError behind `close`."""

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
        """Waits for the checks that run; those that wait are asked again later."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def ended(works: Collection[Work], timeout_seconds: float | None = None) -> None:
    """Returns when all of these have ended, or behind the time."""
    wait(works, timeout_seconds)
