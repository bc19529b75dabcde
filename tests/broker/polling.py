"""Waits for what happens by itself: asks until it has come, or until nothing has changed for a minute."""

import functools
import time
from collections.abc import Callable
from typing import TypeVar

from tests.broker import forks
from tools import machine

Found = TypeVar("Found")

PAUSE_SECONDS = 0.02
# A look is often a request or a connection of its own, which the broker that is waited for needs the processor for.
LONGEST_PAUSE_SECONDS = 0.2
# A wait ends in failure when what is looked at has not changed for so long: no test measures time by a wait.
STILL_SECONDS = 60.0
# Only a longer wait asks whether a process has failed.
FIRST_QUESTION_SECONDS = 1.0
# What never comes to rest ends, too, before the time limit of a test does.
LONGEST_SECONDS = 600.0
# A measurement of the machine's speed takes 60 ms of CPU, and holds for so long.
MEASURED_SECONDS = 5.0


@functools.lru_cache(1)
def slowness(_turn: int) -> float:
    """How slow the machine is now: measured once for each turn of MEASURED_SECONDS."""
    return machine.slowness()


def at_this_load(seconds: float) -> float:
    """What is promised to take so long at most on a machine with a free core, as this one is loaded now.

    The load shows programs that wait for a core, the loop a core that is slow or given in slices.
    """
    return seconds * max(machine.load(), slowness(int(time.monotonic() / MEASURED_SECONDS)))


def eventually(look: Callable[[], Found | None], within_seconds: float = STILL_SECONDS) -> Found:
    """The first true value of `look`. Fails with its last value once that has not changed for STILL_SECONDS. Fails with
    the last lines of a process that a test has started, once such a process has failed by itself.

    What takes longer by itself, without a change that `look` shows, says `within_seconds`. On a busy machine both are
    longer. The pause between two looks is a tenth of the time waited so far, between PAUSE_SECONDS and
    LONGEST_PAUSE_SECONDS.
    """
    began = changed = time.monotonic()
    patience = max(within_seconds, STILL_SECONDS)
    last: Found | None = None
    while not (found := look()):
        now = time.monotonic()
        if found != last:
            last, changed = found, now
        is_still = now - changed >= patience and now - changed >= min(at_this_load(patience), LONGEST_SECONDS)
        assert not is_still, f"nothing has changed for {now - changed:.0f} s; at last: {found!r}"
        assert now - began < max(LONGEST_SECONDS, within_seconds), f"not within {now - began:.0f} s; at last: {found!r}"
        if now - began > FIRST_QUESTION_SECONDS and forks.failed():
            # The process may have ended after the last look, which may be a look at this process.
            if found := look():
                return found
            assert not (failure := forks.failed()), f"{failure}\nat last: {found!r}"
        time.sleep(min(max((now - began) / 10, PAUSE_SECONDS), LONGEST_PAUSE_SECONDS))
    return found
