"""Scrapes of metrics. A metric has a name, a meaning, and a function that reads its samples."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from access import keys
from access.models import ApiKey
from delivery import stats as delivery_stats
from delivery.retries import retrying
from delivery.retries.retrying import OfTopic
from scheduling import lateness
from scheduling import stats as scheduling_stats
from scheduling.stats import Outermost
from store.cells import cells
from store.naming import namespaces
from store.naming.topics import RETRY_PREFIX
from store.process import runtime
from store.rows import ExportWait
from store.segments import exports
from store.segments.exports import Exported
from transactions import stats as transaction_stats
from transactions.rows import WaitingHalves

# A sample: the values of the labels, in their order, and the number.
Sample = tuple[tuple[str, ...], float]
# Labels whose values are names of topics and groups.
NAMES = frozenset(("topic", "producer_group", "consumer_group", "group"))
Family = CounterMetricFamily | GaugeMetricFamily


@dataclass(frozen=True)
class Metric:
    """One metric: its name, meaning and labels, and the function that reads its samples in a cell.

    With several cells, each cell has its own samples, with the label `cell`.
    """

    name: str
    meaning: str
    read: Callable[["ReadOnce"], Iterable[Sample]]
    labels: tuple[str, ...] = ()
    counter: bool = False

    def family(self, *first_labels: str) -> Family:
        """The metric as a family without samples."""
        kind = CounterMetricFamily if self.counter else GaugeMetricFamily
        return kind(self.name, self.meaning, labels=(*first_labels, *self.labels))

    @property
    def names_something(self) -> bool:
        """Whether each sample names a topic or a group; other metrics cannot be limited to a namespace."""
        return not NAMES.isdisjoint(self.labels)

    def samples(self, reading: "ReadOnce") -> Iterable[Sample]:
        """The samples of the cell. For a namespace: only its own samples, with bare names."""
        found = self.read(reading)
        return found if reading.namespace is None else self._narrowed(reading.namespace, found)

    def _narrowed(self, namespace: str, samples: Iterable[Sample]) -> Iterator[Sample]:
        """The samples whose names of topics and groups all lie in the namespace, with bare names.

        This filter protects /metrics: samples of other names are dropped here.
        """
        for values, number in samples:
            named = zip(self.labels, values, strict=True)
            shown = [namespaces.bare(namespace, value) if label in NAMES else value for label, value in named]
            whole = [value for value in shown if value is not None]
            if len(whole) == len(shown):
                yield tuple(whole), number


class Shared(Metric):
    """A metric whose samples are read once for the whole installation, not in each cell."""


CELL_UP = Metric(
    "mqbroker_cell_up", "1 for a cell that answers, else 0; no sample if there is only one cell.", lambda _: ()
)


class Scrape(Collector):
    """One scrape of the metrics: asks all cells at the same time. For a namespace only the metrics of its topics and
    groups are read.
    """

    def __init__(self, metrics: Sequence[Metric], namespace: str | None = None) -> None:
        self._namespace = namespace
        self._metrics = [metric for metric in metrics if namespace is None or metric.names_something]

    def collect(self) -> Iterator[Family]:
        with cells.leaving_out() as missing:
            found = cells.ask(self._read)
        named = {cell.cell: (name,) for cell in runtime.cells() if (name := runtime.placement.label(cell)) is not None}
        shared = ReadOnce(self._namespace)
        for metric in self._metrics:
            is_shared = isinstance(metric, Shared)
            family = metric.family("cell") if named and not is_shared else metric.family()
            for labels, number in metric.samples(shared) if is_shared else ():
                family.add_metric(labels, number)
            for cell, samples in found.items():
                for labels, number in samples.get(metric.name, ()):
                    family.add_metric((*named.get(cell, ()), *labels), number)
            yield family
        if named and self._namespace is None:
            up = CELL_UP.family("cell")
            for one in runtime.cells():
                up.add_metric((one.name,), one.name not in missing)
            yield up

    def _read(self) -> dict[str, list[Sample]]:
        """The samples by metric, for the cell that this work has entered."""
        reading = ReadOnce(self._namespace)
        of_cell = [metric for metric in self._metrics if not isinstance(metric, Shared)]
        return {metric.name: list(metric.samples(reading)) for metric in of_cell}


# The value for timers of the label that otherwise has a delay level's number.
TIMER = "timer"


class ReadOnce:
    """Data that several metrics of one cell need, read only once; for a namespace, only data of its names."""

    def __init__(self, namespace: str | None = None) -> None:
        self.namespace = namespace

    @cached_property
    def waiting(self) -> Sequence[WaitingHalves]:
        """The undecided transactions by group and state."""
        return transaction_stats.waiting(self.namespace)

    @cached_property
    def delays(self) -> dict[str, Outermost]:
        """The oldest and the next message of each delay level and of the timers."""
        levels = {str(level): ends for level, ends in scheduling_stats.level_ends().items()}
        return levels | {TIMER: scheduling_stats.timer_ends()}

    @cached_property
    def late(self) -> dict[str, lateness.Summary]:
        """The lateness of the last hour's releases, by delay level and for timers."""
        found = lateness.of_last_hour()
        return {TIMER if level is None else str(level): summary for level, summary in found.items()}

    @cached_property
    def lags(self) -> Sequence[delivery_stats.TopicLag]:
        """The lag of each consumer group in each topic."""
        return list(delivery_stats.lags(self.namespace))

    @cached_property
    def retrying(self) -> Sequence[OfTopic]:
        """The retrying messages of each consumer group, in each topic that it has begun to read."""
        waits = retrying.everywhere(delivery_stats.MAX_GROUPS, self.namespace)
        found = {(one.group, one.topic): one for one in waits}
        read = [(one.group, one.topic) for one in self.lags if not one.topic.startswith(RETRY_PREFIX)]
        none = {place: OfTopic(*place, 0, 0.0) for place in read}
        return list((none | found).values())

    @cached_property
    def limited_keys(self) -> Sequence[ApiKey]:
        """The API keys that have limits, with the number of refusals."""
        return keys.limits()

    @cached_property
    def exported(self) -> Sequence[Exported]:
        """The latest exports, one per folder."""
        return exports.latest()

    @cached_property
    def awaited(self) -> ExportWait:
        """The segments that wait for an export, and the segments that were dropped without an export."""
        return exports.wait()
