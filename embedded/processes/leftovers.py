"""Leftovers: the processes that a killed run left behind, found by id and start time, and ended."""

import contextlib
import json
import os
import signal
from collections.abc import Iterable
from pathlib import Path

from embedded.processes import identity
from embedded.processes.child import Child, wait_until

STOP_SECONDS = 5


def record(file: Path, children: Iterable[Child]) -> None:
    """Records the running processes in the data folder, for the next run."""
    running = [
        {"name": child.name, "pid": child.pid, "identity": known, "stop_signal": int(child.stop_signal)}
        for child in children
        if (known := identity.of(child.pid)) is not None
    ]
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps(running, indent=1))
    draft.replace(file)


def end(file: Path, data_folder: Path) -> None:
    """Ends the recorded processes that still run, by their stop signal, then by SIGKILL; removes the record."""
    try:
        recorded = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return  # a record is replaced whole, so a broken one is none of ./mq
    left = {pid: entry["stop_signal"] for entry in recorded for pid in alive(entry, data_folder)}
    for pid, stop_signal in left.items():
        send(pid, stop_signal)
    wait_until(lambda: not any(alive(entry, data_folder) for entry in recorded), STOP_SECONDS)
    for entry in recorded:
        for pid in alive(entry, data_folder):
            send(pid, signal.SIGKILL)
    wait_until(lambda: not any(alive(entry, data_folder) for entry in recorded), STOP_SECONDS)
    file.unlink(missing_ok=True)


def alive(entry: dict[str, str | int], data_folder: Path) -> list[int]:
    """The recorded process, or, when it was killed alone, its descendants in its session."""
    leader = int(entry["pid"])
    if identity.of(leader) is not None:
        return [leader] if identity.of(leader) == entry["identity"] else []
    # No session can take the id while a member lives; the variable differs in a later session of that id.
    ours = ("MQBROKER_DATA_DIR", str(data_folder))
    return [pid for pid in identity.session_members(leader) if identity.environment_holds(pid, *ours)]


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
