"""How many web processes serve at one port, and whether one stands by: `auto`, `standby` or a number."""

import argparse
import contextlib
import os
from pathlib import Path
from typing import NamedTuple

# With fewer cores PostgreSQL and the callers leave a second web process none.
CORES_FOR_TWO = 4
CGROUPS = Path("/sys/fs/cgroup")
MEANING = (
    "web processes at the port: `standby`, one that serves and one that stands by until that one ends; how many serve; "
    f"or `auto`, 2 from {CORES_FOR_TWO} cores on and `standby` below"
)


class Count(NamedTuple):
    """The web processes that serve, and whether the process that starts them stands by: several always have that."""

    serving: int
    has_standby: bool


ALONE = Count(1, has_standby=False)
WITH_STANDBY = Count(1, has_standby=True)


def parse(text: str) -> Count:
    """The option's value: `auto` goes by the cores that this process may use.

    Raises ArgumentTypeError with what is allowed.
    """
    if text == "auto":
        return by_cores(cores())
    if text == "standby":
        return WITH_STANDBY
    try:
        serving = int(text)
    except ValueError:
        allowed = "give auto, standby, or a whole number from 1 on."
        raise argparse.ArgumentTypeError(f"{text} is no count of web processes: {allowed}") from None
    if serving < 1:
        raise argparse.ArgumentTypeError(f"{text} is too few: give a whole number from 1 on.")
    return Count(serving, has_standby=serving > 1)


def by_cores(cores: float) -> Count:
    """The count for a machine of so many cores."""
    return Count(2, has_standby=True) if cores >= CORES_FOR_TWO else WITH_STANDBY


def cores() -> float:
    """The cores that this process may use, by its affinity and by the quotas of its control groups."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([float(allowed), *_quotas()])


def _quotas() -> list[float]:
    """The quotas of this process's control group and of those above it, in cores; version 2 of control groups only."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::/"):
                group = CGROUPS / line.removeprefix("0::/")
                return [quota for one in (group, *group.parents) if (quota := quota_of(one)) is not None]
    return []


def quota_of(group: Path) -> float | None:
    """The cores that a control group may use, whose file holds `max 100000` or `200000 100000`; None: all."""
    try:
        quota, period = (group / "cpu.max").read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):  # the root has no such file, and `max` is no number
        return None
