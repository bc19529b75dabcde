"""The answers of the web processes of one port: the number and the time of answers, by call and status.

The counts lie in shared memory, made before the processes fork. So each process can answer a scrape with the counts of
all processes, also of ended ones. The counts begin at 0 when the parent process starts.
"""

import mmap
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from console.monitoring.scrape import Shared
from store.process import runtime

# Upper bounds of the buckets, in seconds. The last bound is the default maximum of a long poll.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
STATUSES: tuple[int, ...] = (200, 201, 202, 204, 301, 302, 304, 400, 401, 403, 404, 405, 406, 408)
STATUSES += (409, 410, 411, 413, 415, 416, 422, 429, 431, 500, 503, 504)
# The label for any other status, and for each call that the data plane does not serve.
OTHER = "other"
MAX_CALLS = 64
# Each process counts in a part of the shared memory: its process id modulo 64. A later process may continue in the same
# part.
PARTS = 64
_BUCKETS = len(BOUNDS) + 1
_SUM = _BUCKETS
_STATUS = _SUM + 1
_ROW = _STATUS + len(STATUSES) + 1
_PART = MAX_CALLS * _ROW
View = Callable[..., Any]
_NUMBER_OF_STATUS = {status: number for number, status in enumerate(STATUSES)}
# Anonymous memory, which forks share. Pages that no process has written to take no memory.
_shared = memoryview(mmap.mmap(-1, PARTS * _PART * 8)).cast("Q")


class HasViews(Protocol):
    """A route whose views are counted."""

    @property
    def views(self) -> Mapping[str, View]:
        """The views of the route, by HTTP method."""


class Tally:
    """Counts the answers of one call in this process."""

    __slots__ = ("_start",)

    def __init__(self, number: int) -> None:
        self._start = (os.getpid() % PARTS) * _PART + number * _ROW

    def count(self, status: int, began: float) -> None:
        """Counts an answer to a request that began at the monotonic time `began`. Takes 0.4 µs."""
        seconds = time.monotonic() - began
        start = self._start
        _shared[start + bisect_left(BOUNDS, seconds)] += 1
        _shared[start + _SUM] += int(seconds * 1e6)
        _shared[start + _STATUS + _NUMBER_OF_STATUS.get(status, len(STATUSES))] += 1


class Calls:
    """The names of the counted calls. Their numbers are the same in each process of a port."""

    def __init__(self) -> None:
        self.names = [OTHER]

    def tallies(self, routes: Iterable[HasViews]) -> tuple[Tally, Mapping[View, Tally]]:
        """The tally for all other calls, and the tally for each view of the routes.

        Raises ValueError for more than MAX_CALLS calls.
        """
        views = [view for route in routes for view in route.views.values()]
        self.names = list(dict.fromkeys((OTHER, *(view.__name__ for view in views))))
        if len(self.names) > MAX_CALLS:
            raise ValueError(f"there are {len(self.names)} calls to count, {MAX_CALLS} at most")
        return Tally(0), {view: Tally(self.names.index(view.__name__)) for view in views}


class Answered(NamedTuple):
    """The answers of one call: their number up to each bound, their seconds in all, and their number by status."""

    call: str
    buckets: Sequence[tuple[str, float]]
    seconds: float
    statuses: Sequence[tuple[str, int]]


def answered(names: Sequence[str]) -> Iterator[Answered]:
    """The answers of all processes of this port for these calls; a call without answers is left out."""
    bounds = [*map(str, BOUNDS), "+Inf"]
    statuses = [*map(str, STATUSES), OTHER]
    for number, name in enumerate(names):
        row = [sum(_shared[number * _ROW + at :: _PART]) for at in range(_ROW)]
        if any(row[:_BUCKETS]):
            buckets = list(zip(bounds, accumulate(row[:_BUCKETS]), strict=True))
            counts = [(status, count) for status, count in zip(statuses, row[_STATUS:], strict=True) if count]
            yield Answered(name, buckets, row[_SUM] / 1e6, counts)


def answered_here(names: Container[str]) -> list[int]:
    """The answers to all these calls that this process has counted: a number for each bucket of BOUNDS, and one for
    longer times. If an earlier process used the same part of the memory, its counts are included.
    """
    starts = [
        (os.getpid() % PARTS) * _PART + number * _ROW
        for number, name in enumerate(runtime.control(Calls).names)
        if name in names
    ]
    return [sum(_shared[start + bucket] for start in starts) for bucket in range(_BUCKETS)]


def _now() -> Iterator[Answered]:
    return answered(runtime.control(Calls).names)


REQUESTS = Shared(
    "mqbroker_requests_total",
    "Answers of the web processes at this port, by call and status; `other` is the control plane and the console.",
    lambda _: (((one.call, status), count) for one in _now() for status, count in one.statuses),
    labels=("call", "status"),
    counter=True,
)
SECONDS = Shared(
    "mqbroker_request_seconds",
    "Time from a request's head to the end of its answer, including the wait of a receive; as a histogram.",
    lambda _: (),
    labels=("call",),
)


class Histogram(Collector):
    """The histogram of answer times."""

    def collect(self) -> Iterator[HistogramMetricFamily]:
        found = HistogramMetricFamily(SECONDS.name, SECONDS.meaning, labels=SECONDS.labels)
        for one in _now():
            found.add_metric((one.call,), one.buckets, one.seconds)
        yield found
