"""A full disk of the database: how a failed write shows it, and when this process last met one."""

import contextlib
import time

from psycopg.errors import DiskFull

from store.process import runtime

# A failure is reported for so long after the last one.
RECENT_SECONDS = 30.0


class FullDisk:
    """When a write of this process last failed for want of room, by the monotonic clock."""

    def __init__(self) -> None:
        self.met_at: float | None = None


def is_full(problem: BaseException) -> bool:
    """Whether a write failed for want of room; Django wraps that error."""
    return isinstance(problem, DiskFull) or isinstance(problem.__cause__, DiskFull)


def note() -> None:
    """Keeps in mind that a write has just failed for want of room."""
    # A command without a runtime has nothing that asks.
    with contextlib.suppress(RuntimeError):
        runtime.control(FullDisk).met_at = time.monotonic()


def is_recent() -> bool:
    """Whether a write failed for want of room within RECENT_SECONDS."""
    met_at = runtime.control(FullDisk).met_at
    return met_at is not None and time.monotonic() - met_at < RECENT_SECONDS
