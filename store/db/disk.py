"""A full disk of the database: recognizes it by a failed write, and notes when a write of this process last failed."""

import contextlib
import time

from psycopg.errors import DiskFull

from store.process import runtime

# A failure is reported until this time after the last failure.
RECENT_SECONDS = 30.0


class FullDisk:
    """The time of this process's last write that failed because the disk was full, by the monotonic clock."""

    def __init__(self) -> None:
        self.met_at: float | None = None


def is_full(problem: BaseException) -> bool:
    """Whether a write failed because the disk is full. Django wraps that error."""
    return isinstance(problem, DiskFull) or isinstance(problem.__cause__, DiskFull)


def note() -> None:
    """Notes that a write has just failed because the disk is full."""
    # A command without a runtime notes no failure, because no code of the command reads the note.
    with contextlib.suppress(RuntimeError):
        runtime.control(FullDisk).met_at = time.monotonic()


def is_recent() -> bool:
    """Whether a write failed because the disk was full within the last RECENT_SECONDS."""
    met_at = runtime.control(FullDisk).met_at
    return met_at is not None and time.monotonic() - met_at < RECENT_SECONDS
