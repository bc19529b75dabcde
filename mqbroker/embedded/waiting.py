"""Waits without a time limit while success is still possible: a machine that is short of CPU is only slow.

A wait prints every 10 s what it waits for, because a silent start looks like a start that hangs.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable

from mqbroker.embedded.processes.child import POLL_SECONDS

SAY_SECONDS = 10
Say = Callable[[str], None]


def say(sentence: str) -> None:
    """Prints a sentence on the terminal, in addition to the command's output."""
    # The broker may run longer than the terminal or the pipe in which it was started.
    with contextlib.suppress(OSError):
        print(f"mq: {sentence}", file=sys.stderr, flush=True)


def silence(sentence: str) -> None:
    """Prints nothing; for tests and benchmarks, which have their own output."""


class Announcer:
    """Prints the reason for a wait, every SAY_SECONDS."""

    def __init__(self, say: Say, now: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._now = now
        self._began = now()
        self._said = self._began

    def still(self, what: str) -> None:
        """Called repeatedly during the wait: prints the reason for the wait once every SAY_SECONDS."""
        now = self._now()
        if now - self._said >= SAY_SECONDS:
            self._said = now
            self._say(f"{what} ({now - self._began:.0f} s so far{busy()}).")


def busy() -> str:
    """A sentence if more processes want to run than the machine has processors; otherwise empty."""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    return f"; the machine is busy, its load is {load:.0f} on {processors} processors" if load > processors else ""


def wait(is_over: Callable[[], bool], what: str, say: Say) -> None:
    """Polls until `is_over` holds. `is_over` must also hold when the wait can no longer succeed."""
    announcer = Announcer(say)
    while not is_over():
        announcer.still(what)
        time.sleep(POLL_SECONDS)
