"""Lakes that the tests keep, and lakes that end in the middle of it, as a process does that is killed.

`die` counts the lines of the lake's own code that a process runs, and kills the process at one of them.
"""

import multiprocessing
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import analytics.export.lake
from analytics.export.lake import table
from analytics.export.lake.job import Lake

CODE = str(Path(analytics.export.lake.__file__).parent)
# Delta Lake's threads do not survive a fork, so each lake runs below a process that has only imported it.
APART = multiprocessing.get_context("forkserver")
APART.set_forkserver_preload(["tests.analytics.lakes"])
WAIT_SECONDS = 600


def lake(url: str, folder: Path) -> tuple[Lake, list[str]]:
    """A lake, and what it says."""
    said: list[str] = []
    return Lake(url, folder, said.append), said


def caught_up(url: str, folder: Path) -> list[str]:
    """Adds what there is; gives what the lake said."""
    of, said = lake(url, folder)
    of.catch_up()
    return said


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of the table, in the order of the queues."""
    from deltalake import DeltaTable

    found: list[dict[str, Any]] = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: (row["topic_id"], row["queue_id"], row["queue_offset"]))


def version(folder: Path) -> int:
    """The version of the table."""
    return table.opened(folder).version


def die(url: str, folder: Path, line: int) -> bool:
    """Keeps a lake in a process that is killed before this line, counted from 0; whether it came so far."""
    process = APART.Process(target=_run, args=(url, folder, line))
    process.start()
    process.join(WAIT_SECONDS)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def _run(url: str, folder: Path, line: int) -> None:
    passed = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal passed
        if not frame.f_code.co_filename.startswith(CODE):
            return None
        if event == "line":
            if passed == line:
                os.kill(os.getpid(), signal.SIGKILL)
            passed += 1
        return trace

    of, _ = lake(url, folder)
    sys.settrace(trace)
    of.catch_up()
