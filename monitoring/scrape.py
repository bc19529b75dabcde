"""What a scrape of the metrics reads, and what a metric is: a name, a meaning, and how its samples are read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from access import keys
from access.models import ApiKey
from analytics.nightly import runs
from analytics.nightly.runs import Nights
from delivery import stats as delivery_stats
from scheduling import lateness
from scheduling import stats as scheduling_stats
from scheduling.stats import Ends
from store.segments import exports
from store.segments.exports import Exported, ExportWait
from transactions import stats as transaction_stats
from transactions.rows import WaitingHalves

# The values of the labels, in their order, and the number.
Sample = tuple[tuple[str, ...], float]
Family = CounterMetricFamily | GaugeMetricFamily


@dataclass(frozen=True)
class Metric:
    """One metric: its name, meaning and labels, and the function that reads its samples."""

    name: str
    meaning: str
    read: Callable[["Reading"], Iterable[Sample]]
    labels: tuple[str, ...] = ()
    counter: bool = False

    def family(self, reading: "Reading") -> Family:
        """The metric with its samples."""
        kind = CounterMetricFamily if self.counter else GaugeMetricFamily
        family = kind(self.name, self.meaning, labels=self.labels)
        for labels, number in self.read(reading):
            family.add_metric(labels, number)
        return family


# Beside the numbers of the delay levels.
TIMER = "timer"


class Reading(Collector):
    """One scrape: what several metrics need is read once."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    @cached_property
    def waiting(self) -> Sequence[WaitingHalves]:
        """The undecided transactions by group and state."""
        return transaction_stats.waiting()

    @cached_property
    def delays(self) -> dict[str, Ends]:
        """The ends of what waits at each delay level and in the timers."""
        levels = {str(level): ends for level, ends in scheduling_stats.level_ends().items()}
        return levels | {TIMER: scheduling_stats.timer_ends()}

    @cached_property
    def late(self) -> dict[str, lateness.Summary]:
        """How late the releases of the last hour were, per delay level and of timers."""
        found = lateness.of_last_hour()
        return {TIMER if level is None else str(level): summary for level, summary in found.items()}

    @cached_property
    def lags(self) -> Sequence[delivery_stats.TopicLag]:
        """How far each consumer group is behind in each topic."""
        return list(delivery_stats.lags())

    @cached_property
    def limited_keys(self) -> Sequence[ApiKey]:
        """The API keys that have limits."""
        return keys.limits()

    @cached_property
    def exported(self) -> Sequence[Exported]:
        """The latest exports, one per folder."""
        return exports.latest()

    @cached_property
    def awaited(self) -> ExportWait:
        """The segments that wait for an export, and those that were dropped without one."""
        return exports.wait()

    @cached_property
    def nights(self) -> Nights | None:
        """The nightly runs, where they are set."""
        return runs.latest()

    def collect(self) -> Iterator[Family]:
        return (metric.family(self) for metric in self._metrics)
