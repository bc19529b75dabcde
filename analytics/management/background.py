"""Has a command give way to the broker's processes: it goes on in a child that gets processors and the disk last.

On the last of the processors only, as many as it has tasks: a thread of the broker's that wakes up finds another one
idle, and one that becomes idle takes over threads that wait. One that the command holds does neither.

Its reads and writes are those of the kernel's idle class, which schedulers of disks that have classes (mq-deadline,
BFQ) let pass when no other is waiting.

At the most, 19, where this process may make a group of the processors' controller (root outside a container):

1. A group of the idle class (`cpu.idle`, since Linux 5.15). A thread of another group pre-empts at once.

Else, which comes close to it:

1. A session of its own, which gets the niceness too: Linux shares the processors among sessions (autogroups), and
   niceness counts only within one. In the session of a shell an export would get as much as all of the broker.
2. The niceness, for systems without autogroups, such as containers.
3. SCHED_BATCH: a thread that wakes up does not pre-empt others. SCHED_IDLE does worse between sessions: the kernel
   takes a processor with such threads for an idle one, and wakes others up there, where they wait for the next tick.
4. The longest slice of time: since Linux 6.12 a thread with a shorter one pre-empts, and does not wait for its end.

What senders notice of each way: tools/bench/RESULTS.md, *Beside senders*. All that the command starts, Java and its
workers, does the same.

Before its first row a command has no more than START_NICENESS: on a machine whose processors are always busy its start
would take minutes at 19. Behind it the command steps back as far as it was asked to (`step_back`). One that does not
move is as any other process again (`come_forward`): by the parent's manners, as far as this user may.
"""

import contextlib
import ctypes
import os
import platform
import signal
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import psutil

MOST = 19
START_NICENESS = 5
GROUPS = Path("/sys/fs/cgroup")
IDLE_GROUP = "mqbroker-background"
AUTOGROUP = Path("/proc/self/autogroup")
PR_SET_PDEATHSIG = 1
# glibc has no function for it before 2.41.
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
ATTRIBUTES_BYTES = 48
SLICE_NANOSECONDS = 100_000_000
WAIT_SECONDS = 0.05


def enter(niceness: int, processors: int) -> None:
    """Returns in the child, or here without a niceness. On so many processors, 0 for all.

    This process stays in its session, where Ctrl-C reaches it: it forwards signals, and exits as the child does. When
    it is killed, so is the child.
    """
    if not niceness:
        return
    front = os.getpid()
    child = os.fork()
    if child:
        os._exit(_status(child))
    _end_with(front)
    _begin(min(niceness, START_NICENESS), processors)


def _status(child: int) -> int:
    """The exit status of the child, as a shell would say it."""

    def forward(number: int, frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)
    # A signal just before a wait does not interrupt it, and its handler would run after it: so no wait is long.
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        time.sleep(WAIT_SECONDS)
    _, status = ended
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _end_with(front: int) -> None:
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != front:
        os.kill(os.getpid(), signal.SIGKILL)


def _begin(niceness: int, processors: int) -> None:
    os.setsid()
    os.nice(niceness)
    if sys.platform != "linux":
        return
    # A container may forbid it.
    with contextlib.suppress(OSError, psutil.Error):
        psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)
    if processors:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-processors:])
    _set_autogroup(niceness)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    _take_long_slices(niceness)


def has_entered() -> bool:
    """Whether this process is the child that `enter` returns in: its session holds the command, and nothing else."""
    return sys.platform == "linux" and os.getsid(0) == os.getpid()


def step_back(niceness: int) -> None:
    """Has all of the command, which has begun, give way as far as it was asked to."""
    is_idle = niceness == MOST and _is_in_idle_group()
    if not is_idle:
        _set_autogroup(niceness)
    for thread in _threads():
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, niceness)


def come_forward() -> bool:
    """Has all of the command be as the process that was started is. Returns whether this user may raise niceness."""
    front = os.getppid()
    _leave_idle_group(front)
    niceness, processors = os.getpriority(os.PRIO_PROCESS, front), os.sched_getaffinity(front)
    _set_autogroup(0)
    is_raised = True
    for process in processes():
        with contextlib.suppress(OSError, psutil.Error):
            process.ionice(psutil.IOPRIO_CLASS_NONE)
    for thread in _threads():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread, processors)
            os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
            try:
                os.setpriority(os.PRIO_PROCESS, thread, niceness)
            except PermissionError:
                is_raised = False
    return is_raised


def processes() -> Iterator[psutil.Process]:
    """All of the command: the processes of this session."""
    for process in psutil.process_iter():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(process.pid) == os.getsid(0):
                yield process


def _threads() -> Iterator[int]:
    """The kernel has a niceness and processors for each thread; Java's are a hundred."""
    for process in processes():
        with contextlib.suppress(OSError):
            yield from [int(name) for name in os.listdir(f"/proc/{process.pid}/task")]


def _set_autogroup(niceness: int) -> None:
    # A kernel without autogroups has no such file.
    with contextlib.suppress(OSError):
        AUTOGROUP.write_text(str(niceness), encoding="ascii")


def _is_in_idle_group() -> bool:
    """Joins it. It stays, empty, for the next command: none knows when the last of all that it held has ended."""
    for own in _groups_of(os.getpid()):
        group = own / IDLE_GROUP
        with contextlib.suppress(OSError):
            group.mkdir(exist_ok=True)
            _write(group / "cpu.idle", "1")
            for process in processes():
                _write(group / "cgroup.procs", str(process.pid))
            return True
        # A controller without groups for processors, or a kernel without the class.
        with contextlib.suppress(OSError):
            group.rmdir()
    return False


def _leave_idle_group(front: int) -> None:
    for own in _groups_of(front):
        with contextlib.suppress(OSError):
            for process in processes():
                _write(own / "cgroup.procs", str(process.pid))


def _groups_of(process: int) -> Iterator[Path]:
    """Where the processors' controller has a process, by version 1 or 2 of the kernel's groups."""
    for line in Path(f"/proc/{process}/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(","):
            yield GROUPS / controllers / path.lstrip("/")
        elif not controllers:
            yield GROUPS / path.lstrip("/")


def _write(file: Path, text: str) -> None:
    """Into a file that is there: in a folder that is no group's one would be made."""
    with file.open("r+b", buffering=0) as opened:
        opened.write(text.encode())


def _take_long_slices(niceness: int) -> None:
    """An older kernel takes the call and keeps its slices."""
    number = SCHED_SETATTR.get(platform.machine())
    if number:
        attributes = (0, niceness, 0, SLICE_NANOSECONDS, 0, 0)
        packed = struct.pack("IIQiIQQQ", ATTRIBUTES_BYTES, os.SCHED_BATCH, *attributes)
        ctypes.CDLL(None).syscall(number, 0, packed, 0)
