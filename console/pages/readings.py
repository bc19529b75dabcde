"""Readings that all tabs of one process share: what is asked for again within a few seconds is not read again.

A reading that takes long is kept for longer, so that open pages cost no more than a share of a core.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.conf import settings

from store.naming import cells
from store.process import runtime

Read = TypeVar("Read")
# Of the time that a reading took: it is kept for as many times, and so takes 0.7 % of a core at most.
KEPT_TIMES = 150
MAX_KEPT_SECONDS = 60.0


@dataclass(slots=True)
class Latest:
    """The latest reading of one kind; a request that finds it too old reads, and the others wait for that."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    until: float = 0.0
    found: Any = None
    missing: list[str] = field(default_factory=list)


class LatestReadings:
    """The latest readings of one process, by the function that reads."""

    def __init__(self) -> None:
        self._kept: defaultdict[Callable[[], Any], Latest] = defaultdict(Latest)

    def of(self, read: Callable[[], Read]) -> Read:
        """What `read` returns now, or returned at most `kept_seconds` ago."""
        kept = self._kept[read]
        with kept.lock:
            begun = time.monotonic()
            if kept.until <= begun:
                with cells.leaving_out() as kept.missing:
                    kept.found = read()
                took = time.monotonic() - begun
                kept.until = begun + took + kept_seconds(settings.CONSOLE_READING_SECONDS, took)
            cells.leave_out(kept.missing)
            latest: Read = kept.found
            return latest


def kept_seconds(wanted_seconds: float, took_seconds: float) -> float:
    """How long a reading is kept that took so long; none is kept where 0 s are wanted."""
    longer = max(wanted_seconds, min(took_seconds * KEPT_TIMES, MAX_KEPT_SECONDS))
    return longer if wanted_seconds else 0.0


def shared(read: Callable[[], Read]) -> Read:
    """What `read`, a function of a module, returns, or returned to another request of this process a moment ago."""
    return runtime.control(LatestReadings).of(read)
