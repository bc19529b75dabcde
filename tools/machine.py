"""Measures the speed of this machine by a loop, and chooses the number of test processes that keep its cores busy."""

import os
import time
from pathlib import Path

# The seconds of the loop on the machine where promises in seconds were measured; the rounds of one measurement.
REFERENCE_SECONDS, ROUNDS = 0.0125, 5
# The part of a core that a test process uses there; the line "in all" of `./mq test --profile FILE` has the seconds.
BUSY = 0.33


def calibrate() -> float:
    """The seconds of the loop, by the clock on the wall."""
    began = time.perf_counter()
    table: dict[int, tuple[int, str]] = {}
    for number in range(60_000):
        table[number * 7919 % 65_536] = (number, str(number))
    return time.perf_counter() - began


def slowness() -> float:
    """The time of the loop on this machine now, divided by its time on the reference machine; at least 1.

    The loop takes longer on a slow core, and on a core that is shared with other programs or limited by a quota.
    """
    return max(1.0, sum(calibrate() for _ in range(ROUNDS)) / ROUNDS / REFERENCE_SECONDS)


def load() -> float:
    """The number of programs that run or wait, per core."""
    waiting = os.getloadavg()[0]
    # The system reports the mean of a minute; Linux also reports the present number.
    if (now := Path("/proc/loadavg")).exists():
        waiting = max(waiting, int(now.read_text().split()[3].partition("/")[0]))
    return waiting / (os.cpu_count() or 1)


def processes(cores: int) -> int:
    """The number of test processes that keep the cores busy: more on a fast machine, where processes wait more."""
    slow = slowness() * BUSY
    return max(1, round(cores * (slow + 1 - BUSY) / slow))
