"""Ends a process with all that it started, as a machine does that is switched off."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable

import psutil

# `MQ_KILLS=5 ./mq test --all tests/analytics/test_export_kills.py` takes a minute more.
KILLS = int(os.environ.get("MQ_KILLS", "1"))
# A start takes 5 s; on a machine with ten times as much to do, two minutes.
WAIT_SECONDS = 600


class Ended(Exception):
    """A process that ended by itself, with what it said."""


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9 of the process, of Java and of the Python workers, which have a group of their own."""
    found = _tree(process)
    _signal(found, signal.SIGKILL)
    psutil.wait_procs(found, timeout=WAIT_SECONDS)
    process.wait(WAIT_SECONDS)
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()


def kill_while(is_so: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """The same at a moment at which it is so: the processes are stopped before it is looked at again. Raises Ended."""
    while True:
        wait_until(is_so, process)
        found = _tree(process)
        _signal(found, signal.SIGSTOP)
        if is_so():
            kill(process)
            return
        _signal(found, signal.SIGCONT)


def wait_until(is_so: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Returns when it is so, while the process runs. Raises Ended."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        if process.poll() is not None:
            raise Ended("".join(said or "" for said in process.communicate()))
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _signal(processes: list[psutil.Process], number: signal.Signals) -> None:
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.send_signal(number)


def _tree(process: subprocess.Popen[str]) -> list[psutil.Process]:
    # Of one that has ended another may have the id by now.
    if process.poll() is not None:
        return []
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(process.pid)
        return [root, *root.children(recursive=True)]
    return []
