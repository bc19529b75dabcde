"""Runs a command with less priority than the broker's processes: in a child that gets processors and the disk last.

The child uses only the last processors, as many as it has tasks: so a thread of the broker that wakes up finds another
processor idle. A processor that the command occupies delays such a thread.

Its reads and writes are in the kernel's idle class. Disk schedulers with classes (mq-deadline, BFQ) serve this class
only when no other request waits.

At the lowest priority, 19, if this process may create a control group for processors (as root outside a container):

1. A group of the idle class (`cpu.idle`, since Linux 5.15). A thread of another group interrupts it at once.

Otherwise four measures together, which have nearly the same effect:

1. A session of its own, which gets the niceness too: Linux shares the processors among sessions (autogroups), and
   niceness counts only within one. In the session of a shell an export would get as much as the whole broker.
2. The niceness, for systems without autogroups, such as containers.
3. SCHED_BATCH: a thread that wakes up does not interrupt others. SCHED_IDLE is worse between sessions: the kernel takes
   a processor with such threads for an idle one, and wakes others up there, where they wait for the next tick.
4. The longest time slice: since Linux 6.12 a thread with a shorter slice interrupts one with a longer slice.

How much each measure delays senders: tools/bench/RESULTS.md, *Beside senders*. The measures apply to all that the
command starts: Java and its workers.

Before its first row a command has at most START_NICENESS: at 19 its start would take minutes on a machine whose
processors are always busy. After the first row Java and its workers get the requested priority (`step_back`). A command
that makes no progress gets normal priority again (`come_forward`): the parent's, as far as this user may raise it.
"""

import contextlib
import ctypes
import os
import platform
import signal
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

import psutil

MOST = 19
START_NICENESS = 5
GROUPS = Path("/sys/fs/cgroup")
IDLE_GROUP = "mqbroker-background"
AUTOGROUP = Path("/proc/self/autogroup")
PR_SET_PDEATHSIG = 1
# The number of the system call, for which glibc has no function before 2.41.
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
ATTRIBUTES_BYTES = 48
SLICE_NANOSECONDS = 100_000_000
WAIT_SECONDS = 0.05


def enter(niceness: int, processors: int) -> None:
    """Returns in a child process with lower priority; with niceness 0 returns in this process.

    `processors` limits the child, 0 for all. The parent stays in its session, where Ctrl-C reaches it: it forwards
    signals and exits with the child's status. If the parent is killed, the child is killed too.
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
    """The exit status of the child, as a shell reports it."""

    def forward(number: int, frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)
    # A signal just before a blocking wait would not interrupt the wait, and its handler would only run afterwards. So
    # this loop waits briefly.
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
    # A container may forbid these calls.
    with contextlib.suppress(OSError, psutil.Error):
        psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)
    if processors:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-processors:])
    _set_autogroup(niceness)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    _take_long_slices(niceness)


def has_entered() -> bool:
    """Whether this process is the child of `enter`, whose session contains only the processes of the command."""
    return sys.platform == "linux" and os.getsid(0) == os.getpid()


def step_back(niceness: int) -> None:
    """Lowers the priority of Java and its workers to the requested niceness, once they have begun to work. This process
    keeps its priority: it does little, and must see in time that the others make no progress.
    """
    started = [process for process in processes() if process.pid != os.getpid()]
    is_idle = niceness == MOST and _are_in_idle_group(started)
    if not is_idle:
        _set_autogroup(niceness)
    for thread in _threads(started):
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, niceness)


def come_forward() -> bool:
    """Gives all processes of the command the parent's priority. Returns whether this user may raise the priority."""
    front = os.getppid()
    _leave_idle_group(front)
    niceness, processors = os.getpriority(os.PRIO_PROCESS, front), os.sched_getaffinity(front)
    _set_autogroup(0)
    is_raised = True
    for process in processes():
        with contextlib.suppress(OSError, psutil.Error):
            process.ionice(psutil.IOPRIO_CLASS_NONE)
    for thread in _threads(processes()):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread, processors)
            os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
            try:
                os.setpriority(os.PRIO_PROCESS, thread, niceness)
            except PermissionError:
                is_raised = False
    return is_raised


def processes() -> Iterator[psutil.Process]:
    """The processes of the command: all processes of this session."""
    for process in psutil.process_iter():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(process.pid) == os.getsid(0):
                yield process


def _threads(those: Iterable[psutil.Process]) -> Iterator[int]:
    """The thread ids of processes. Niceness and processors are set for each thread, and Java has about a hundred."""
    for process in those:
        with contextlib.suppress(OSError):
            yield from [int(name) for name in os.listdir(f"/proc/{process.pid}/task")]


def _set_autogroup(niceness: int) -> None:
    # A kernel without autogroups lacks this file.
    with contextlib.suppress(OSError):
        AUTOGROUP.write_text(str(niceness), encoding="ascii")


def _are_in_idle_group(those: Iterable[psutil.Process]) -> bool:
    """Moves processes into the idle control group. Returns False if this process may make no such group. The group is
    never removed, because no command knows when another's processes have ended.
    """
    for own in _groups_of(os.getpid()):
        group = own / IDLE_GROUP
        with contextlib.suppress(OSError):
            group.mkdir(exist_ok=True)
            _write(group / "cpu.idle", "1")
            for process in those:
                _write(group / "cgroup.procs", str(process.pid))
            return True
        # The controller may have no groups for processors, or the kernel no idle class.
        with contextlib.suppress(OSError):
            group.rmdir()
    return False


def _leave_idle_group(front: int) -> None:
    for own in _groups_of(front):
        with contextlib.suppress(OSError):
            for process in processes():
                _write(own / "cgroup.procs", str(process.pid))


def _groups_of(process: int) -> Iterator[Path]:
    """The folders of a process's control group for processors, in version 1 or 2 of the kernel's interface."""
    for line in Path(f"/proc/{process}/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(","):
            yield GROUPS / controllers / path.lstrip("/")
        elif not controllers:
            yield GROUPS / path.lstrip("/")


def _write(file: Path, text: str) -> None:
    """Writes to an existing file only: in a folder that is no control group the file would otherwise be created."""
    with file.open("r+b", buffering=0) as opened:
        opened.write(text.encode())


def _take_long_slices(niceness: int) -> None:
    """Asks for the longest time slice. An older kernel accepts the call and changes nothing."""
    number = SCHED_SETATTR.get(platform.machine())
    if number:
        attributes = (0, niceness, 0, SLICE_NANOSECONDS, 0, 0)
        packed = struct.pack("IIQiIQQQ", ATTRIBUTES_BYTES, os.SCHED_BATCH, *attributes)
        ctypes.CDLL(None).syscall(number, 0, packed, 0)
