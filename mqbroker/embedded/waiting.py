"""Waits that last as long as something can come of them: a machine that is short of CPU is slow, and nothing is wrong.

They say each 10 s what they wait for, because a start that says nothing looks as one that hangs.
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
    """Says it on the terminal, beside what a command prints."""
    # The broker may outlive the terminal or the pipe that it was started in.
    with contextlib.suppress(OSError):
        print(f"mq: {sentence}", file=sys.stderr, flush=True)


def silence(sentence: str) -> None:
    """Says nothing: for tests and benchmarks, whose output is their own."""


class Announcer:
    """Says what is waited for, SAY_SECONDS after the wait has begun and each SAY_SECONDS from then on."""

    def __init__(self, say: Say, now: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._now = now
        self._began = now()
        self._said = self._began

    def still(self, what: str) -> None:
        """To be called again and again during the wait."""
        now = self._now()
        if now - self._said >= SAY_SECONDS:
            self._said = now
            self._say(f"{what} ({now - self._began:.0f} s so far{busy()}).")


def busy() -> str:
    """That the machine is busy, where more processes want to run than it has processors."""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    return f"; the machine is busy, its load is {load:.0f} on {processors} processors" if load > processors else ""


def wait(is_over: Callable[[], bool], what: str, say: Say) -> None:
    """Polls until something is so, which has to include that it cannot become so any more."""
    announcer = Announcer(say)
    while not is_over():
        announcer.still(what)
        time.sleep(POLL_SECONDS)
