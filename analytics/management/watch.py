"""Watches the progress of a low-priority command: raises its priority if the command starves.

A starved command is recognised by its processor time: even a long slice uses processor time, a command that waits for a
processor uses none.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark import SparkContext

from analytics.export import progress
from analytics.management import background

EVERY_SECONDS = 1.0
STILL_SECONDS = 20.0
# A share of one processor: a command that gets less within STILL_SECONDS makes no progress.
LEAST_SHARE = 0.1


@contextmanager
def kept(niceness: int, say: Callable[[str], None], still_seconds: float = STILL_SECONDS) -> Iterator[None]:
    """Watches this command within the block, if it runs at low priority."""
    if not niceness or not background.has_entered():
        yield
        return
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(niceness, say, still_seconds, ended), name="manners", daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def _watch(niceness: int, say: Callable[[str], None], still_seconds: float, ended: threading.Event) -> None:
    has_stepped_back = False
    used = Used()
    seen: deque[tuple[float, float]] = deque([(time.monotonic(), used.seconds())])
    while not ended.wait(EVERY_SECONDS):
        if not has_stepped_back and has_rows():
            background.step_back(niceness)
            has_stepped_back = True
        now = time.monotonic()
        seen.append((now, used.seconds()))
        while now - seen[1][0] >= still_seconds:
            seen.popleft()
        waited, got = now - seen[0][0], seen[-1][1] - seen[0][1]
        if waited >= still_seconds and got < waited * LEAST_SHARE:
            is_raised = background.come_forward()
            kept = "" if is_raised else ", but for its niceness, which this user may not raise (--nice 0 sets none)"
            say(f"In {waited:.0f} s it got {got:.1f} s of a processor: its priority is no longer lowered{kept}.")
            return


class Used:
    """The processor time in seconds of the command's running and ended processes."""

    def __init__(self) -> None:
        self._of_each: dict[tuple[int, float], float] = {}

    def seconds(self) -> float:
        """The total processor time so far, in seconds."""
        for process in background.processes():
            with suppress(psutil.Error):
                times = process.cpu_times()
                self._of_each[process.pid, process.create_time()] = times.user + times.system
        return sum(self._of_each.values())


def has_rows() -> bool:
    """Whether Spark has finished a task that reads or writes rows."""
    context = SparkContext._active_spark_context
    # No Java runs yet while the Spark session is being opened.
    if context is None or getattr(context, "_jsc", None) is None:
        return False
    with suppress(Py4JError, OSError):
        found = [stages for group in (None, *progress.TABLES) for _, stages in progress.jobs(context, group)]
        return any(stage.numCompletedTasks for stages in found for stage in stages)
    return False
