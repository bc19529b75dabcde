"""The CPU time that processes have used."""

import contextlib

import psutil


def used_below(process: psutil.Process) -> float:
    """The CPU seconds of all processes that a process has started, also of those that have ended and been waited for.

    A child that ends while it is looked at has handed its seconds to its parent: what is missing is less than a look.
    """
    return sum(cpu_seconds(child) for child in process.children(recursive=True))


def used_by_tree(process: psutil.Process) -> float:
    """The CPU seconds of a process, and of all that it has started."""
    return cpu_seconds(process) + used_below(process)


def cpu_seconds(process: psutil.Process) -> float:
    """Of one process and of its children that have ended and been waited for; none of a process that has gone."""
    with contextlib.suppress(psutil.NoSuchProcess):
        used = process.cpu_times()
        return used.user + used.system + used.children_user + used.children_system
    return 0.0
