"""Says whether a process id still means the process it meant: ids are used again, start times are not."""

import subprocess
from pathlib import Path


def of(pid: int) -> str | None:
    """What tells this process from every other that had or will have its id, or None when it is gone."""
    if Path("/proc/self/stat").exists():
        return of_proc(pid)
    # Without /proc: a start time in seconds.
    shown = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = shown.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


def of_proc(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command's name comes second, in parentheses, and may hold anything; the fields after it are fixed.
    fields = stat.rpartition(")")[2].split()
    state, started_ticks = fields[0], fields[19]
    return None if state in "ZX" else f"{boot()} {started_ticks}"


def boot() -> str:
    """Ticks count from the machine's start, so each start is told apart."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def session_members(leader: int) -> list[int]:
    """Processes of the session that this process id led, also when the leader is gone; Linux only, else none."""
    members = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we looked
        state, session = fields[0], int(fields[3])
        if session == leader and state not in "ZX":
            members.append(int(folder.name))
    return members


def environment_holds(pid: int, name: str, value: str) -> bool:
    """Whether a process was started with this variable; Linux only, else False."""
    try:
        return f"{name}={value}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
