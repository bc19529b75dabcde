"""The charts over time: the series of each chart, and their points, read from the history."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from console.monitoring.requests import BOUNDS
from console.monitoring.rows import Step
from store.db import sync
from store.db.statements import Statement
from transactions.stats import OUTCOMES

READ_HISTORY = Statement(__file__, "read_history", Step)
NAMES_IN_HISTORY = Statement(__file__, "names_in_history", one=str)

MAX_NAMES = 500
Of = Literal["broker", "topic", "group", "namespace"]


class Span(NamedTuple):
    """A period that ends now, and the seconds between two points."""

    label: str
    steps: int
    step_seconds: int


SPANS: Mapping[str, Span] = {
    "1h": Span("1 hour", 60, 60),
    "24h": Span("24 hours", 96, 900),
    "7d": Span("7 days", 168, 3600),
}


class Series(NamedTuple):
    """A line of a chart. A point is the mean of a figure over a step, or for a `peak` the highest value in the step."""

    label: str
    figure: str
    name: str | None = None
    peak: bool = False


class Kind(NamedTuple):
    """A chart: its title, the unit of its values, and its lines."""

    title: str
    unit: str
    series: tuple[Series, ...]


KINDS: Mapping[Of, tuple[Kind, ...]] = {
    "broker": (
        Kind("Messages", "per second", (Series("became visible", "in"), Series("handed out", "out"))),
        Kind(
            "Transactions",
            "per second",
            (Series("begun", "halves"), Series("committed", "commits"), Series("rolled back", "rollbacks")),
        ),
        Kind("Lag of all consumer groups", "entries", (Series("lag", "lag", peak=True),)),
        Kind("Oldest unacked message", "seconds", (Series("age", "oldest", peak=True),)),
        Kind("Time of a send", "ms", (Series("p50", "send_seconds"), Series("p99", "send_seconds"))),
        Kind(
            "Checks", "per minute", tuple(Series(outcome.replace("_", " "), "checks", outcome) for outcome in OUTCOMES)
        ),
        Kind("Undecided transactions", "transactions", (Series("undecided", "undecided", peak=True),)),
        Kind("Lateness of releases", "ms, p99 of a minute", (Series("late", "late_ms", peak=True),)),
    ),
    "topic": (
        Kind("Messages", "per second", (Series("became visible", "topic_in"), Series("handed out", "topic_out"))),
    ),
    "group": (
        Kind("Messages", "per second", (Series("handed out", "group_out"),)),
        Kind("Lag", "entries", (Series("lag", "group_lag", peak=True),)),
        Kind("Oldest unacked message", "seconds", (Series("age", "group_oldest", peak=True),)),
    ),
    "namespace": (
        Kind(
            "Messages",
            "per second",
            (Series("became visible", "namespace_in"), Series("handed out", "namespace_out")),
        ),
        Kind("Lag of its consumer groups", "entries", (Series("lag", "namespace_lag", peak=True),)),
        Kind("Oldest unacked message", "seconds", (Series("age", "namespace_oldest", peak=True),)),
    ),
}
QUANTILES = {"p50": 0.50, "p99": 0.99}
# The figures of which a minute has several rows: one for each outcome, or for each bucket of time.
OF_SEVERAL = ("checks", "send_seconds")
# The figure that has a row in each recorded minute, so its rows show which minutes were recorded.
RECORDED = "stored"


@dataclass(frozen=True)
class Chart:
    """A chart with its points, the oldest first. A point is None when no minute of its step was recorded."""

    kind: Kind
    times: Sequence[datetime]
    lines: Mapping[str, Sequence[float | None]]


def read(of: Of, name: str, span: Span, now: datetime) -> list[Chart]:
    """The charts of the broker, or of one topic, group or namespace, up to `now`, the time of the database."""
    asked = {
        "name": name,
        "figures": [series.figure for kind in KINDS[of] for series in kind.series],
        "all_names": [RECORDED, *(OF_SEVERAL if of == "broker" else ())],
        "step_seconds": span.step_seconds,
        "steps": span.steps,
    }
    found: dict[tuple[str, str], dict[int, Step]] = {}
    for row in sync.read(READ_HISTORY, asked):
        found.setdefault((row.figure, row.name), {})[row.step] = row
    times = _times(span, now)
    return [Chart(kind, times, dict(_lines(kind, name, span, found))) for kind in KINDS[of]]


def names(of: Of, span: Span) -> list[str]:
    """The topics, groups or namespaces that have a history within the span, MAX_NAMES at most."""
    asked = {
        "figures": [series.figure for kind in KINDS[of] for series in kind.series],
        "seconds": span.steps * span.step_seconds,
        "max_names": MAX_NAMES,
    }
    return list(sync.read(NAMES_IN_HISTORY, asked))


def _times(span: Span, now: datetime) -> list[datetime]:
    """The end of each step."""
    last = now.replace(second=0, microsecond=0)
    return [last - timedelta(seconds=span.step_seconds * ago) for ago in reversed(range(span.steps))]


def _lines(
    kind: Kind, name: str, span: Span, found: Mapping[tuple[str, str], Mapping[int, Step]]
) -> Iterator[tuple[str, list[float | None]]]:
    recorded = found.get((RECORDED, ""), {})
    for series in kind.series:
        if series.figure == "send_seconds":
            yield series.label, _send_times(QUANTILES[series.label], span, found)
            continue
        of_name = found.get((series.figure, name if series.name is None else series.name), {})
        yield series.label, [_value(series, of_name.get(ago), recorded.get(ago)) for ago in reversed(range(span.steps))]


def _value(series: Series, step: Step | None, recorded: Step | None) -> float | None:
    """The mean over the recorded minutes, in which a figure of 0 has no row; for a peak the highest value."""
    if step is None:
        return None if recorded is None else 0.0
    if series.peak:
        return step.highest
    return step.total / max(step.minutes, recorded.minutes if recorded else 0)


def _send_times(share: float, span: Span, found: Mapping[tuple[str, str], Mapping[int, Step]]) -> list[float | None]:
    """The quantile `share` of the send times of each step, in ms; None for a step without sends."""
    buckets = [found.get(("send_seconds", str(number)), {}) for number in range(len(BOUNDS) + 1)]
    counts = (
        [step.total if (step := of_bucket.get(ago)) else 0.0 for of_bucket in buckets]
        for ago in reversed(range(span.steps))
    )
    return [quantile_ms(share, of_step) for of_step in counts]


def quantile_ms(share: float, counts: Sequence[float]) -> float | None:
    """The quantile `share` of the times of the counted answers, in ms, interpolated within a bucket of BOUNDS."""
    wanted, below = share * sum(counts), 0.0
    if not wanted:
        return None
    edges = (0.0, *BOUNDS, BOUNDS[-1])
    for bucket, count in enumerate(counts):
        if count and below + count >= wanted:
            low, high = edges[bucket], edges[bucket + 1]
            return round((low + (high - low) * (wanted - below) / count) * 1000, 3)
        below += count
    return round(BOUNDS[-1] * 1000, 3)
