"""What the broker did of one namespace, in all and lately: what /v1/stats answers to a key that is bound to it.

The numbers come from the offsets of the namespace's topics and from the operations of its producer groups. Stored
messages and checks are counted for the whole broker alone, so both are left out.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from console.monitoring.stats import BELIEVED_SECONDS, HOUR, MINUTE
from store import stats as store_stats
from store.cells import cells
from store.process import runtime
from transactions.reads import of_namespace

# Any caller without a namespace may name one, so only so many readings are kept.
MAX_KEPT = 100
# The numbers of a stretch of time; what cannot be told is left out.
Numbers = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class OwnStatistics:
    """One reading of all cells: what is kept, and two windows; `missing` are the cells that did not answer."""

    at: datetime
    totals: Mapping[str, Any]
    last_minute: Mapping[str, Any]
    last_hour: Mapping[str, Any]
    missing: Sequence[str]


class LatestOwn:
    """The latest reading of each namespace in one process."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._read: dict[str, tuple[float, OwnStatistics]] = {}

    def now(self, namespace: str) -> OwnStatistics:
        """The reading, at most BELIEVED_SECONDS old."""
        with self._reading:
            if namespace not in self._read or self._read[namespace][0] < time.monotonic():
                if len(self._read) >= MAX_KEPT:
                    self._read.clear()
                self._read[namespace] = (time.monotonic() + BELIEVED_SECONDS, _read(namespace))
            return self._read[namespace][1]


def now(namespace: str) -> OwnStatistics:
    """The statistics of a namespace, read at most BELIEVED_SECONDS ago."""
    return runtime.control(LatestOwn).now(namespace)


def _read(namespace: str) -> OwnStatistics:
    with cells.leaving_out() as missing:
        found = cells.ask(lambda: _read_cell(namespace))
    kept, minute, hour = (_sum(numbers) for numbers in zip(*found.values(), strict=True))
    totals = {**kept, "estimated": False}
    return OwnStatistics(datetime.now(UTC), totals, _window(MINUTE, minute), _window(HOUR, hour), missing)


def _read_cell(namespace: str) -> list[Numbers]:
    """The numbers of one cell: of all that it keeps, of its last minute and of its last hour."""
    windows = (MINUTE, HOUR)
    entries = store_stats.entries(windows, namespace).entries
    decisions = of_namespace.decisions(namespace, windows)
    counts = (entries.kept, *(entries.within[seconds] for seconds in windows))
    return [
        {"entries": count} if decided is None else {"entries": count, **decided._asdict()}
        for count, decided in zip(counts, decisions, strict=True)
    ]


def _sum(of_cells: Sequence[Numbers]) -> Numbers:
    """The numbers of several cells together; one that a cell could not tell is left out."""
    names = [name for name in of_cells[0] if all(name in numbers for numbers in of_cells)]
    return {name: sum(numbers[name] for numbers in of_cells) for name in names}


def _window(seconds: int, numbers: Numbers) -> Mapping[str, Any]:
    counts = {name: {"count": count, "per_second": round(count / seconds, 3)} for name, count in numbers.items()}
    return {"seconds": seconds, "estimated": False, **counts}
