"""Readings that the requests of one process share: within a few seconds the database is not read again.

A slow reading is kept for longer, so that open pages cost less, but never longer than MAX_AGE_SECONDS, because
operators need current numbers. The age of a reading counts from the start of its oldest part.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.conf import settings

from store.cells import cells
from store.process import runtime

Read = TypeVar("Read")
# A reading is kept for this many times the time that it took, so that repeated readings take 0.7 % of a core.
KEPT_TIMES = 150
# The largest age of a reading. A page that renews itself every 5 s then shows a finding within 15 s.
MAX_AGE_SECONDS = 9.0
LEAST_KEPT_SECONDS = 0.5
# The most kinds of readings; an address may name any namespace, and each namespace has a separate reading.
MAX_KINDS = 100


@dataclass(slots=True)
class Latest:
    """The latest reading of one function.

    A request that finds the reading too old makes a new one; other requests wait for the new reading.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    # Times of time.monotonic(). `begun`: the start of this reading, or of an older reading that it has used. `until`:
    # the reading may be used up to this time.
    begun: float = 0.0
    until: float = 0.0
    found: Any = None
    missing: list[str] = field(default_factory=list)


class LatestReadings:
    """The latest readings of one process. The key of each is the function that makes the reading."""

    def __init__(self) -> None:
        self._kept: defaultdict[Callable[[], Any], Latest] = defaultdict(Latest)
        # For each thread: the readings that the thread is making at the moment, nested calls last.
        self._making = threading.local()

    def of(self, read: Callable[[], Read]) -> tuple[Read, float]:
        """The result of `read`, from a new call or from a recent call, and its age in seconds."""
        if len(self._kept) >= MAX_KINDS:
            self._kept.clear()
        kept = self._kept[read]
        with kept.lock:
            if kept.until <= time.monotonic():
                self._make(kept, read)
            cells.leave_out(kept.missing)
            for outer in self._outer():
                outer.begun = min(outer.begun, kept.begun)
            latest: Read = kept.found
            return latest, time.monotonic() - kept.begun

    def _make(self, kept: Latest, read: Callable[[], Any]) -> None:
        begun = kept.begun = time.monotonic()
        self._outer().append(kept)
        try:
            with cells.leaving_out() as kept.missing:
                kept.found = read()
        finally:
            self._outer().pop()
        ended = time.monotonic()
        age = ended - kept.begun
        kept.until = ended + kept_seconds(settings.CONSOLE_READING_SECONDS, ended - begun, age)

    def _outer(self) -> list[Latest]:
        outer: list[Latest] = self._making.__dict__.setdefault("outer", [])
        return outer


def kept_seconds(wanted_seconds: float, took_seconds: float, age_seconds: float) -> float:
    """The seconds for which a reading is kept, by how long it took and how old it is; 0 if the caller asks for 0 s.

    A reading that has reached its maximum age is still kept for half a second, for the requests that waited for it.
    """
    if not wanted_seconds:
        return 0.0
    if wanted_seconds >= MAX_AGE_SECONDS:
        return wanted_seconds
    longer = max(wanted_seconds, took_seconds * KEPT_TIMES)
    return max(min(longer, MAX_AGE_SECONDS - age_seconds), LEAST_KEPT_SECONDS)


def shared(read: Callable[[], Read]) -> Read:
    """The result of `read`, or of another request's recent call of the same function in this process.

    `read` must be a module's function, or compare equal to functions that read the same.
    """
    return aged(read)[0]


def aged(read: Callable[[], Read]) -> tuple[Read, float]:
    """The result of `shared`, and its age in seconds."""
    return runtime.control(LatestReadings).of(read)
