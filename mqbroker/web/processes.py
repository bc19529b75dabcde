"""Several web processes on one listening socket: started, replaced when one dies, and ended together.

They inherit the socket. Were each to bind the port by itself, with SO_REUSEPORT, any other process of the same user
could take a part of the connections unnoticed.
"""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import structlog

logger = structlog.stdlib.get_logger(__name__)

POLL_SECONDS = 0.1
RESPAWN_SECONDS = 0.2
# An ending process finishes its requests and writes what waits.
STOP_SECONDS = 2.5
# The exit status of a process that refuses its database: another one would refuse it, too. EX_CONFIG of sysexits.h.
UNFIT = 78
PR_SET_PDEATHSIG = 1
ROOT = Path(__file__).resolve().parents[2]


class Processes:
    """The children of this process, each of which runs `work` until SIGTERM."""

    def __init__(self, work: Callable[[], None], count: int) -> None:
        self._work = work
        self._count = count
        self._pids: set[int] = set()
        self._is_stopping = False
        self._is_unfit = False

    def run(self, *, reload: bool) -> int:
        """Returns after SIGTERM or SIGINT, when all have ended."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        for _ in range(self._count):
            self._start()
        changed = self._watch() if reload else None
        while not self._is_stopping and not self._is_unfit:
            for pid in self._ended():
                logger.warning("a web process died, another one takes its place", pid=pid)
                time.sleep(RESPAWN_SECONDS)
                self._start()
            if changed is not None and changed():
                self._end_all()
                for _ in range(self._count):
                    self._start()
            time.sleep(POLL_SECONDS)
        self._end_all()
        return UNFIT if self._is_unfit else 0

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True

    def _start(self) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            self._pids.add(pid)
            return
        status = 1
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            end_with(parent)
            self._work()
            status = 0
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else status
        except BaseException:
            logger.exception("a web process failed")
        finally:
            os._exit(status)

    def _ended(self) -> list[int]:
        """The children that have ended since the last call."""
        waited = [os.waitpid(pid, os.WNOHANG) for pid in self._pids]
        self._is_unfit |= any(pid and os.waitstatus_to_exitcode(status) == UNFIT for pid, status in waited)
        ended = [pid for pid, _ in waited if pid]
        self._pids.difference_update(ended)
        return ended

    def _end_all(self) -> None:
        for pid in self._pids:
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while self._pids and time.monotonic() < deadline:
            self._ended()
            time.sleep(POLL_SECONDS / 5)
        for pid in self._pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self._pids.clear()

    def _watch(self) -> Callable[[], bool]:
        """Returns what finds out whether code has changed since its last call."""
        from watchfiles import PythonFilter, watch  # a dependency of development

        found = watch(ROOT, watch_filter=PythonFilter(), yield_on_timeout=True, rust_timeout=100, raise_interrupt=False)
        return lambda: bool(next(found, ()))


def end_with(parent: int) -> None:
    """Has the kernel end this process when its parent has ended, also when that was killed; on Linux only."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
