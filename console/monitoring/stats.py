"""The activity of the broker, in total and recently: the numbers of its apps combined, for /v1/stats and /metrics.

The numbers of a namespace come from the offsets of its topics and from the operations of its producer groups. Stored
messages and checks are only counted for the whole broker, so a namespace's numbers lack both.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from store import stats as store_stats
from store.cells import cells
from store.process import runtime
from transactions import stats as transaction_stats
from transactions.reads import of_namespace as own_decisions

MINUTE, HOUR = 60, 3600
# A reading is used again until it has this age, so that many callers share one reading.
BELIEVED_SECONDS = 1.0
# A limit, because a caller without a namespace may name any namespace.
MAX_KEPT = 100
# The numbers of a period, by name; a number that cannot be counted is left out.
Numbers = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Totals:
    """The numbers of a period; `mqbroker.api.control.stats` documents each number."""

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
    """A number within a window, and the rate per second."""

    count: int
    per_second: float


@dataclass(frozen=True, slots=True)
class Window:
    """The numbers of the last `seconds` seconds."""

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
    """The statistics of all cells at one time: the kept rows, the last minute and the last hour. `missing` names the
    cells that did not answer.
    """

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
    """The numbers of one cell: kept rows, last minute, last hour."""
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
    """The sums of several cells; an estimate when one of the cells' numbers is an estimate."""
    columns = {name: [getattr(each, name) for each in totals] for name in Totals.__slots__}
    estimated = any(columns.pop("estimated"))
    return Totals(**{name: sum(numbers) for name, numbers in columns.items()}, estimated=estimated)


@dataclass(frozen=True, slots=True)
class OwnStatistics:
    """One reading of a namespace in all cells: the kept rows, and the last minute and the last hour.

    `missing` has the cells that did not answer.
    """

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
                self._read[namespace] = (time.monotonic() + BELIEVED_SECONDS, _read_own(namespace))
            return self._read[namespace][1]


def of_namespace(namespace: str) -> OwnStatistics:
    """The statistics of a namespace, read at most BELIEVED_SECONDS ago."""
    return runtime.control(LatestOwn).now(namespace)


def _read_own(namespace: str) -> OwnStatistics:
    with cells.leaving_out() as missing:
        found = cells.ask(lambda: _read_own_cell(namespace))
    kept, minute, hour = (_sum_own(numbers) for numbers in zip(*found.values(), strict=True))
    totals = {**kept, "estimated": False}
    return OwnStatistics(datetime.now(UTC), totals, _window_of(MINUTE, minute), _window_of(HOUR, hour), missing)


def _read_own_cell(namespace: str) -> list[Numbers]:
    """The numbers of one cell: of all kept rows, of its last minute and of its last hour."""
    windows = (MINUTE, HOUR)
    entries = store_stats.entries(windows, namespace).entries
    decisions = own_decisions.decisions(namespace, windows)
    counts = (entries.kept, *(entries.within[seconds] for seconds in windows))
    return [
        {"entries": count} if decided is None else {"entries": count, **decided._asdict()}
        for count, decided in zip(counts, decisions, strict=True)
    ]


def _sum_own(of_cells: Sequence[Numbers]) -> Numbers:
    """The sums of several cells; a number that a cell has not counted is left out."""
    names = [name for name in of_cells[0] if all(name in numbers for numbers in of_cells)]
    return {name: sum(numbers[name] for numbers in of_cells) for name in names}


def _window_of(seconds: int, numbers: Numbers) -> Mapping[str, Any]:
    counts = {name: {"count": count, "per_second": round(count / seconds, 3)} for name, count in numbers.items()}
    return {"seconds": seconds, "estimated": False, **counts}
