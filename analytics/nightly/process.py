"""The process of a nightly run: the export and then its reports, each in a process with a time limit.

1. Take the lock of the nightly run. If another session has it, another run is under way: end.
2. Run the commands, one after the other. Each inherits the connection that holds the lock, so that the lock lasts as
   long as a command runs, also when this process is killed.
3. Past the time limit, kill the command with all processes that it started; the earlier export stays as it was.
4. Note the outcome, and log it.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from typing import IO, Any

import psycopg
import structlog
from django.conf import settings

from analytics import connections
from analytics.connections import Connection
from analytics.nightly import runs
from analytics.readers import address

logger = structlog.stdlib.get_logger(__name__)

# The kept part of a command's output, enough for its last line.
TAIL_BYTES = 4096


class Stopped(Exception):
    """A command failed or was killed; the text is the reason."""


def run(day: date) -> None:
    """Runs the nightly run of a day. Its outcome is noted and logged; no failure is raised."""
    signal.signal(signal.SIGTERM, _stop)
    began = time.monotonic()
    with connections.connect(address.conninfo(settings.DIRECT_DATABASE)) as holder:
        holder.autocommit = True
        [is_taken] = connections.read(holder, runs.TAKE_NIGHTLY, {"key": runs.LOCK})
        if not is_taken:
            logger.info("another nightly export is under way", day=str(day))
            return
        failure = _attempt(holder, began + settings.EXPORT_NIGHTLY_MAX_SECONDS)
        seconds = round(time.monotonic() - began, 1)
        if failure is None:
            logger.info("the nightly export is done", day=str(day), seconds=seconds)
        else:
            logger.error("the nightly export failed", day=str(day), seconds=seconds, reason=failure)
        # Without the session that holds the lock no outcome can be written; the next run counts this one as failed.
        with contextlib.suppress(psycopg.OperationalError):
            holder.execute(runs.END_NIGHTLY.sql(), {"day": day, "failure": failure})


def _attempt(holder: Connection, deadline: float) -> str | None:
    """The reason why the nightly run failed; None when both commands succeeded."""
    target = settings.EXPORT_NIGHTLY_TO
    for words in (("export", "--to", target), ("report", target, "--console")):
        try:
            _command(holder, deadline, words)
        except Stopped as stopped:
            return f"{words[0]}: {stopped}"
    return None


def _command(holder: Connection, deadline: float, words: Sequence[str]) -> None:
    """Runs one command to its end. Raises Stopped."""
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            [sys.executable, str(settings.BASE_DIR / "manage.py"), *words],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            process_group=0,
            pass_fds=(holder.fileno(),),
        )
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as late:
            limit = settings.EXPORT_NIGHTLY_MAX_SECONDS
            raise Stopped(f"it took longer than EXPORT_NIGHTLY_MAX_SECONDS ({limit} s)") from late
        finally:
            # _kill kills the whole process group, so that Java ends too if only Python was killed.
            _kill(process)
        if process.returncode:
            raise Stopped(_last_line(printed) or f"exit status {process.returncode}")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_line(printed: IO[bytes]) -> str:
    printed.seek(0, os.SEEK_END)
    printed.seek(max(0, printed.tell() - TAIL_BYTES))
    lines = printed.read().decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("CommandError: ") if lines else ""


def _stop(number: int, frame: Any) -> None:
    raise Stopped("it was asked to stop")
