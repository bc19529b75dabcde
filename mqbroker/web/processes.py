"""The web processes of one listening socket: forked from a standby process, replaced when they die, ended together.

The children inherit the socket. If each bound the port with SO_REUSEPORT, another process of the same user could take
some of the connections unnoticed. While no child serves for a moment, connections wait in the socket.
"""

import contextlib
import ctypes
import os
import select
import signal
import struct
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import structlog

logger = structlog.stdlib.get_logger(__name__)

POLL_SECONDS = 0.02
# If a child ends within this time, its successor would probably end at once too, so its successor starts only after
# RESPAWN_SECONDS.
SOON_SECONDS = 1.0
RESPAWN_SECONDS = 0.2
# Seconds in which an ending process finishes its requests and writes waiting operations.
STOP_SECONDS = 2.5
# The exit status of a child that refuses the database: another child would refuse it, too. EX_CONFIG of sysexits.h.
UNFIT = 78
PR_SET_PDEATHSIG = 1
ROOT = Path(__file__).resolve().parents[2]
ID_BYTES = 4


class Handover(NamedTuple):
    """The functions that a child gets from its parent: the child calls `begin` before its first request, `leave` after
    its last.
    """

    # An earlier child has already served, so the database is known to be fit.
    is_known: bool
    begin: Callable[[], object]
    leave: Callable[[], object]


Work = Callable[[Handover], None]
ALONE = Handover(False, lambda: None, lambda: None)


class Processes:
    """The children of this process; each runs `work` until SIGTERM.

    This process stands by: it has loaded all code that children need, and has neither connections nor threads. So a
    fork can serve after it has opened a few connections to the database. Forks also share its memory.
    """

    def __init__(self, work: Work, count: int, earlier: Collection[int] = ()) -> None:
        self._work = work
        self._count = count
        # The start time of each child, by process id.
        self._started: dict[int, float] = dict.fromkeys(earlier, time.monotonic())
        # The process ids of children that accept no more requests.
        self._leaving: set[int] = set()
        self._has_served = False
        self._is_stopping = False
        self._is_unfit = False
        self._is_to_restart = False
        self._woken, self._waker = os.pipe()
        # A child writes its process id to this pipe when it begins, and its negative id when it leaves.
        self._reports, self._reporter = os.pipe()
        for descriptor in (self._woken, self._waker, self._reports):
            os.set_blocking(descriptor, False)

    @property
    def pids(self) -> list[int]:
        """The process ids of running children."""
        return sorted(self._started)

    def run(self, load: Callable[[], None], *, reload: bool) -> int | None:
        """Returns the exit status after SIGTERM or SIGINT, when all children have ended; None after SIGHUP, while they
        still serve.

        If `load` fails, earlier children continue to serve; without earlier children the error is raised.
        """
        self._take_signals()
        changed = self._watch() if reload else None
        if (changed is not None or self._has_loaded(load)) and not self._is_stopping:
            self._begin()
        while not self._is_stopping and not self._is_unfit and not self._is_to_restart:
            self._replace_ended()
            if changed is None:
                self._wait()
            elif changed():
                self._end_all()
                self._begin()
        if self._is_to_restart and not self._is_stopping:
            return None
        self._end_all()
        return UNFIT if self._is_unfit else 0

    def _has_loaded(self, load: Callable[[], None]) -> bool:
        try:
            load()
        except (Exception, SystemExit):  # if the new code cannot be loaded, the old children continue to serve
            if not self._started:
                raise
            logger.exception("the code cannot be loaded, the web processes of the earlier one serve on")
            return False
        return True

    def _begin(self) -> None:
        """Starts all children. They replace earlier children."""
        earlier = self.pids
        for number in range(self._count):
            self._start(earlier[number :: self._count])

    def _take_signals(self) -> None:
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._is_to_restart |= number == signal.SIGHUP
        self._is_stopping |= number in (signal.SIGTERM, signal.SIGINT)

    def _wait(self) -> None:
        """Returns at a signal (also when a child ends), and when a child reports that it begins or leaves."""
        select.select([self._woken, self._reports], [], [])
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
        with contextlib.suppress(BlockingIOError):
            read = os.read(self._reports, 1024 * ID_BYTES)
            for (id_,) in struct.iter_unpack("=i", read):
                if id_ > 0:
                    self._has_served = True
                else:
                    self._leaving.add(-id_)

    def _start(self, replaced: Collection[int] = ()) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            self._started[pid] = time.monotonic()
            return
        status = 1
        try:
            self._reset_signals()
            end_with(parent)
            # A child that replaces others examines the database: new code may have new requirements, and no caller
            # waits for it.
            is_known = self._has_served and not replaced
            self._work(Handover(is_known, partial(self._begun, replaced), self._leave))
            status = 0
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else status
        except BaseException:
            logger.exception("a web process failed")
        finally:
            os._exit(status)

    def _begun(self, replaced: Collection[int]) -> None:
        """Called by a child: reports that it can serve, so that the children that it replaces may end."""
        self._report(os.getpid())
        for pid in replaced:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def _leave(self) -> None:
        """Called by a child: reports that it accepts no more requests.

        Its parent starts another child while this one finishes.
        """
        self._report(-os.getpid())

    def _report(self, id_: int) -> None:
        with contextlib.suppress(OSError):  # the parent no longer exists
            os.write(self._reporter, struct.pack("=i", id_))

    def _reset_signals(self) -> None:
        """Called by a child: restores the default signal handlers, except for SIGHUP, which only the parent handles."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for descriptor in (self._woken, self._waker, self._reports):
            os.close(descriptor)

    def _replace_ended(self) -> None:
        for pid, (status, lived) in self._ended().items():
            if status:
                logger.warning("a web process died, another one takes its place", pid=pid, status=status)
            if lived < SOON_SECONDS:
                time.sleep(RESPAWN_SECONDS)
        self._leaving.intersection_update(self._started)
        while len(self._started) - len(self._leaving) < self._count and not self._is_unfit:
            self._start()

    def _ended(self) -> dict[int, tuple[int, float]]:
        """The children that have ended since the last call: their exit status, and their lifetime in seconds."""
        now, ended = time.monotonic(), {}
        for pid in self.pids:
            waited, status = os.waitpid(pid, os.WNOHANG)
            if waited:
                ended[pid] = (os.waitstatus_to_exitcode(status), now - self._started.pop(pid))
        # A refusal by a child that should replace others is only a death, because the others still serve.
        self._is_unfit |= not self._started and any(status == UNFIT for status, _ in ended.values())
        return ended

    def _end_all(self) -> None:
        for pid in self.pids:
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while self._started and time.monotonic() < deadline:
            self._ended()
            time.sleep(POLL_SECONDS)
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self._started.clear()

    def _watch(self) -> Callable[[], bool]:
        """Returns a function that says whether code has changed since its last call."""
        from watchfiles import PythonFilter, watch  # installed only for development

        found = watch(ROOT, watch_filter=PythonFilter(), yield_on_timeout=True, rust_timeout=100, raise_interrupt=False)
        return lambda: bool(next(found, ()))


def end_with(parent: int) -> None:
    """Makes the kernel end this process when its parent ends, also if the parent is killed; only on Linux."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
