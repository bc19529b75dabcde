"""What the broker did, in all and lately: the numbers of its apps put together, for /v1/stats and /metrics."""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from store import stats as store_stats
from store.cells import cells
from store.process import runtime
from transactions import stats as transaction_stats

MINUTE, HOUR = 60, 3600
# Many callers at once are answered from one reading.
BELIEVED_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Totals:
    """Numbers of a stretch of time; `mqbroker.api.control.stats` documents each."""

    messages: int
    entries: int
    halves: int
    commits: int
    rollbacks: int
    discarded: int
    checks: int
    estimated: bool


@dataclass(frozen=True, slots=True)
class Count:
    """A number within a window, and per second of it."""

    count: int
    per_second: float


@dataclass(frozen=True, slots=True)
class Window:
    """The numbers of the last so many seconds."""

    seconds: int
    estimated: bool
    messages: Count
    entries: Count
    halves: Count
    commits: Count
    rollbacks: Count
    discarded: Count
    checks: Count

    @classmethod
    def of(cls, seconds: int, totals: Totals) -> "Window":
        """The totals of a window with their rates."""
        numbers = asdict(totals)
        estimated = numbers.pop("estimated")
        counts = {name: Count(number, round(number / seconds, 3)) for name, number in numbers.items()}
        return cls(seconds=seconds, estimated=estimated, **counts)

    def rates(self) -> Iterator[tuple[str, float]]:
        """Each number's name and its rate per second."""
        for name in self.__slots__:
            number = getattr(self, name)
            if isinstance(number, Count):
                yield name, number.per_second


@dataclass(frozen=True, slots=True)
class Statistics:
    """One reading of all cells: what is kept, and two windows; `missing` are the cells that did not answer."""

    at: datetime
    totals: Totals
    last_minute: Window
    last_hour: Window
    missing: Sequence[str]


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
    return runtime.control(Latest).now()


def _read() -> Statistics:
    with cells.leaving_out() as missing:
        found = cells.ask(_read_cell)
    kept, minute, hour = (_sum(totals) for totals in zip(*found.values(), strict=True))
    return Statistics(datetime.now(UTC), kept, Window.of(MINUTE, minute), Window.of(HOUR, hour), missing)


def _read_cell() -> tuple[Totals, Totals, Totals]:
    """What one cell keeps, and its last minute and hour."""
    windows = (MINUTE, HOUR)
    messages = store_stats.messages(windows)
    visible = store_stats.entries(windows)
    decisions = transaction_stats.decisions(windows)

    def window(seconds: int) -> Totals:
        return Totals(
            messages=messages.within[seconds],
            entries=visible.entries.within[seconds],
            discarded=visible.discarded.within[seconds],
            **asdict(decisions.within[seconds]),
        )

    kept = Totals(
        messages=messages.kept,
        entries=visible.entries.kept,
        discarded=visible.discarded.kept,
        **asdict(decisions.kept),
    )
    return kept, window(MINUTE), window(HOUR)


def _sum(totals: Sequence[Totals]) -> Totals:
    """The numbers of several cells together; estimated where one is."""
    columns = {name: [getattr(each, name) for each in totals] for name in Totals.__slots__}
    estimated = any(columns.pop("estimated"))
    return Totals(**{name: sum(numbers) for name, numbers in columns.items()}, estimated=estimated)
