"""The option `--processes`: how many web processes serve a port, and whether one stands by: `auto`, `standby` or a
number.
"""

import argparse
import contextlib
import os
from pathlib import Path
from typing import NamedTuple

# With fewer cores, PostgreSQL and the callers leave no core for a second web process.
CORES_FOR_TWO = 4
CGROUPS = Path("/sys/fs/cgroup")
MEANING = (
    "web processes at the port: `standby`, one that serves and one that stands by until that one ends; how many serve; "
    f"or `auto`, 2 from {CORES_FOR_TWO} cores on and `standby` below"
)


class Count(NamedTuple):
    """The number of web processes that serve, and whether their parent stands by; with several it always does."""

    serving: int
    has_standby: bool


ALONE = Count(1, has_standby=False)
WITH_STANDBY = Count(1, has_standby=True)


def parse(text: str) -> Count:
    """Parses the option. `auto` depends on the cores that this process may use.

    Raises ArgumentTypeError with the allowed values.
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
    """The count for a machine with this many cores."""
    return Count(2, has_standby=True) if cores >= CORES_FOR_TWO else WITH_STANDBY


def cores() -> float:
    """The number of cores that this process may use, limited by its affinity and by the quotas of
    its control groups.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([float(allowed), *_quotas()])


def _quotas() -> list[float]:
    """The quotas in cores of this process's control group and the groups above it; only for version 2 of control
    groups.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::/"):
                group = CGROUPS / line.removeprefix("0::/")
                return [quota for one in (group, *group.parents) if (quota := quota_of(one)) is not None]
    return []


def quota_of(group: Path) -> float | None:
    """The cores that a control group may use; None for no limit. Its file contains `max 100000` or `200000 100000`."""
    try:
        quota, period = (group / "cpu.max").read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):  # the root group lacks this file, and `max` is not a number
        return None
