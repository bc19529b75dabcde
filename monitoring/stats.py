"""What the broker did, in all and lately: the figures of its rooms put together, for /v1/stats and /metrics."""

import threading
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from store import runtime
from store import stats as store_stats
from transactions import stats as transaction_stats

MINUTE, HOUR = 60, 3600
# Many callers at once are answered from one reading.
BELIEVED_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Totals:
    """Numbers of a stretch of time; `mqbroker.api.control.stats` says what each means."""

    messages: int
    entries: int
    halves: int
    commits: int
    rollbacks: int
    discarded: int
    checks: int
    estimated: bool


@dataclass(frozen=True, slots=True)
class Statistics:
    """One reading. A window's numbers come each with their rate per second."""

    at: datetime
    totals: Totals
    last_minute: dict[str, Any]
    last_hour: dict[str, Any]


class Latest:
    """The latest reading of one process."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._read: tuple[float, Statistics] | None = None

    def now(self) -> Statistics:
        """The reading, at most BELIEVED_SECONDS old."""
        with self._reading:
            if self._read is None or self._read[0] < time.monotonic():
                self._read = (time.monotonic() + BELIEVED_SECONDS, _read())
            return self._read[1]


def now() -> Statistics:
    """The statistics, read at most BELIEVED_SECONDS ago."""
    return runtime.part(Latest).now()


def _read() -> Statistics:
    windows = (MINUTE, HOUR)
    messages, visible, transactions = (
        store_stats.messages(windows),
        store_stats.entries(windows),
        transaction_stats.decisions(windows),
    )

    def totals(ended: transaction_stats.Figures, messages: int, entries: int, discarded: int) -> Totals:
        return Totals(messages=messages, entries=entries, discarded=discarded, **asdict(ended))

    def window(seconds: int) -> dict[str, Any]:
        numbers = totals(
            transactions.within[seconds],
            messages.within[seconds],
            visible.entries.within[seconds],
            visible.discarded.within[seconds],
        )
        return _rates(numbers, seconds)

    return Statistics(
        at=datetime.now(UTC),
        totals=totals(transactions.kept, messages.kept, visible.entries.kept, visible.discarded.kept),
        last_minute=window(MINUTE),
        last_hour=window(HOUR),
    )


def _rates(numbers: Totals, seconds: int) -> dict[str, Any]:
    counts = asdict(numbers)
    estimated = counts.pop("estimated")
    rates = {name: {"count": count, "per_second": round(count / seconds, 3)} for name, count in counts.items()}
    return {"seconds": seconds, "estimated": estimated, **rates}
