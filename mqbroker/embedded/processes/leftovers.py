"""Leftovers: the processes that a killed run left behind, found by id and start time, and ended."""

import contextlib
import json
import os
import signal
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from mqbroker.embedded.processes import identity
from mqbroker.embedded.processes.child import Child, wait_until

STOP_SECONDS = 5


@dataclass(frozen=True)
class Recorded:
    """A process in the record of the data folder: its name, identity and stop signal."""

    name: str
    pid: int
    identity: str
    stop_signal: int


def record(file: Path, children: Iterable[Child]) -> None:
    """Records the running processes in the data folder, for the next run."""
    running = [
        asdict(Recorded(child.name, child.pid, known, int(child.stop_signal)))
        for child in children
        if (known := identity.of(child.pid)) is not None
    ]
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps(running, indent=1))
    draft.replace(file)


def end(file: Path, data_folder: Path) -> None:
    """Ends the recorded processes that still run, by their stop signal, then by SIGKILL; removes the record."""
    try:
        recorded = [Recorded(**entry) for entry in json.loads(file.read_text())]
    except (FileNotFoundError, ValueError, TypeError):
        return  # a record is written in one step, so an unreadable file is not a record of ./mq
    for each in recorded:
        for pid in alive(each, data_folder):
            send(pid, each.stop_signal)
    wait_until(lambda: not any(alive(each, data_folder) for each in recorded), STOP_SECONDS)
    for each in recorded:
        for pid in alive(each, data_folder):
            send(pid, signal.SIGKILL)
    wait_until(lambda: not any(alive(each, data_folder) for each in recorded), STOP_SECONDS)
    file.unlink(missing_ok=True)


def alive(process: Recorded, data_folder: Path) -> list[int]:
    """The recorded process; or, if only that process was killed, its descendants in its session."""
    now = identity.of(process.pid)
    if now is not None:
        return [process.pid] if now == process.identity else []
    # The system gives the id of a session to no other session while a member lives, and the variable tells later
    # sessions apart.
    own = ("MQBROKER_DATA_DIR", str(data_folder))
    return [pid for pid in identity.session_members(process.pid) if identity.environment_holds(pid, *own)]


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
