"""The identity of a process: the system reuses ids, but not an id with the same start time."""

import contextlib
import os
from pathlib import Path

import psutil

ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def of(pid: int) -> str | None:
    """A text that identifies a process among all processes that ever have this id; None when the process has ended."""
    with contextlib.suppress(psutil.NoSuchProcess, OSError):
        process = psutil.Process(pid)
        if process.status() not in ENDED:
            return _started(process)
    return None


def _started(process: psutil.Process) -> str:
    if not BOOT_ID.exists():
        return str(process.create_time())
    # The text is kept for the next run, and on Linux psutil's start time changes with the system's clock. So on Linux
    # this text has the process's start in ticks since the machine's start, which do not change. The command's name is
    # the second field, in parentheses, and may contain any character.
    ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{BOOT_ID.read_text().strip()} {ticks}"


def session_members(leader: int) -> list[int]:
    """The processes of a session, also when its leader has ended."""
    return [pid for pid in psutil.pids() if _session_of(pid) == leader and of(pid) is not None]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None  # the process has ended, or belongs to another user


def environment_holds(pid: int, name: str, value: str) -> bool:
    """Whether a process was started with this variable."""
    try:
        return psutil.Process(pid).environ().get(name) == value
    except psutil.Error:
        return False
