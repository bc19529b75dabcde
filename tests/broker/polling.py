"""Waits for what happens by itself: asked again and again, with a deadline, and never longer than needed."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")

PAUSE_SECONDS = 0.02
# A look is often a request or a connection of its own, which the broker that is waited for needs the processor for.
LONGEST_PAUSE_SECONDS = 0.1
# A test that waits for what never comes ends, however busy the machine is.
MOST = 6


def at_this_load(seconds: float) -> float:
    """What is promised to take so long at most on a machine with a free core, as this one is loaded now.

    Where several programs wait for each core, all that a test and its broker do takes as many times longer.
    """
    waiting = os.getloadavg()[0]
    # That is the mean of a minute; on Linux there is also the number of now.
    if (now := Path("/proc/loadavg")).exists():
        waiting = max(waiting, int(now.read_text().split()[3].partition("/")[0]))
    return seconds * max(1.0, waiting / (os.cpu_count() or 1))


def eventually(look: Callable[[], Found | None], within_seconds: float = 30.0) -> Found:
    """The first true value of `look`. Fails with its last value when the time is over, on a busy machine later.

    The pause between two looks is a tenth of the time waited so far, between PAUSE_SECONDS and LONGEST_PAUSE_SECONDS.
    """
    began = time.monotonic()
    while not (found := look()):
        waited = time.monotonic() - began
        is_late = waited >= within_seconds and waited >= min(at_this_load(within_seconds), MOST * within_seconds)
        assert not is_late, f"not within {within_seconds:g} s; at last: {found!r}"
        time.sleep(min(max(waited / 10, PAUSE_SECONDS), LONGEST_PAUSE_SECONDS))
    return found
