"""The broker's metrics for Prometheus: every name once, with its meaning and its source.

Each scrape reads all of them from the database. Counters of a process would have to be summed over the web processes
behind one port, of which a scrape reaches one; rows and offsets are the same for all of them, and outlive a restart.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from access import keys
from access.models import ApiKey
from delivery import stats as delivery_stats
from delivery.dead_letters import lists as dead_letter_lists
from delivery.push import registry as subscription_registry
from monitoring import stats
from scheduling import lateness
from scheduling import stats as scheduling_stats
from scheduling.stats import Ends
from store import stats as store_stats
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
QUANTILES = {"0.5": "p50_ms", "0.99": "p99_ms"}


class Reading(Collector):
    """One scrape: what several metrics need is read once."""

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

    def collect(self) -> Iterator[Family]:
        return (metric.family(self) for metric in METRICS)


def _last_minute(_: Reading) -> Iterator[Sample]:
    for figure, per_second in stats.now().last_minute.rates():
        yield (figure,), per_second


def _lateness(reading: Reading) -> Iterator[Sample]:
    for level, summary in reading.late.items():
        for quantile, name in QUANTILES.items():
            late_ms = getattr(summary, name)
            if late_ms is not None:
                yield (level, quantile), late_ms / 1000


def _oldest(reading: Reading) -> Iterator[Sample]:
    for level, ends in reading.delays.items():
        if ends.oldest_seconds is not None:
            yield (level,), ends.oldest_seconds


def _next_due(reading: Reading) -> Iterator[Sample]:
    for level, ends in reading.delays.items():
        if ends.next_due_seconds is not None:
            yield (level,), ends.next_due_seconds


def _forecast(_: Reading) -> Iterator[Sample]:
    coming = {str(level): minutes for level, minutes in scheduling_stats.level_forecast().items()}
    for level, minutes in (coming | {TIMER: scheduling_stats.timer_forecast()[0]}).items():
        yield (level, "minute"), minutes[0]
        yield (level, "hour"), sum(minutes)


def _key_limits(reading: Reading) -> Iterator[Sample]:
    for key in reading.limited_keys:
        for name in keys.MAX_LIMITS:
            limit = getattr(key, name)
            if limit is not None:
                yield (key.name, name), limit


METRICS = (
    Metric(
        "mqbroker_messages_stored_total",
        "Messages that the commit log ever took, half messages among them.",
        lambda _: [((), store_stats.ever_stored())],
        counter=True,
    ),
    Metric(
        "mqbroker_entries_total",
        "Entries that ever became visible in a topic; in the schedule topic: that ever waited at a delay level.",
        lambda _: [((topic,), entries) for topic, entries in store_stats.entries_by_topic().items()],
        labels=("topic",),
        counter=True,
    ),
    Metric(
        "mqbroker_operations_total",
        "What was ever said of transactions: commits, rollbacks, unknowns, discards and resumes.",
        lambda _: [((), transaction_stats.operations_ever())],
        counter=True,
    ),
    Metric(
        "mqbroker_per_second",
        "Rates of the last minute, as in /v1/stats: messages, entries, halves, commits, rollbacks, discarded, checks.",
        _last_minute,
        labels=("figure",),
    ),
    Metric(
        "mqbroker_half_messages",
        "Undecided transactions of a producer group; DISCARDED ones wait for an operator.",
        lambda reading: [((row.producer_group, row.state), row.halves) for row in reading.waiting],
        labels=("producer_group", "state"),
    ),
    Metric(
        "mqbroker_oldest_half_message_seconds",
        "Age of the oldest undecided transaction of a producer group. It grows while the producer answers no checks.",
        lambda reading: [((row.producer_group, row.state), row.oldest_seconds) for row in reading.waiting],
        labels=("producer_group", "state"),
    ),
    Metric(
        "mqbroker_checks_last_hour",
        "Checks of the last hour by outcome: decided, unknown, unanswered, handed_out (to a poll), unreached.",
        lambda _: [((outcome,), count) for outcome, count in transaction_stats.checks().items()],
        labels=("outcome",),
    ),
    Metric(
        "mqbroker_half_to_end_seconds",
        "Time from half to end of the latest decided transactions.",
        lambda _: [((quantile,), seconds) for quantile, seconds in transaction_stats.seconds_undecided().items()],
        labels=("quantile",),
    ),
    Metric(
        "mqbroker_endpoints",
        "Endpoints of a producer group; open and disabled ones are not called.",
        lambda _: [((group, state), count) for group, state, count in transaction_stats.endpoints()],
        labels=("producer_group", "state"),
    ),
    Metric(
        "mqbroker_consumer_lag",
        "Entries of a topic that a consumer group was not handed yet.",
        lambda reading: [((one.group, one.topic), one.lag) for one in reading.lags],
        labels=("consumer_group", "topic"),
    ),
    Metric(
        "mqbroker_oldest_unacked_seconds",
        "How long the oldest entry of a topic is visible that a consumer group was not handed or has not acked.",
        lambda reading: [((one.group, one.topic), one.oldest_unacked_seconds) for one in reading.lags],
        labels=("consumer_group", "topic"),
    ),
    Metric(
        "mqbroker_deliveries_in_flight",
        "Deliveries of a consumer group that are neither acked nor over.",
        lambda _: [((group,), count) for group, count in delivery_stats.in_flight().items()],
        labels=("consumer_group",),
    ),
    Metric(
        "mqbroker_dead_letters",
        "Dead letters of a consumer group that were not redriven.",
        lambda _: [((row.group_name,), row.letters) for row in dead_letter_lists.groups()],
        labels=("consumer_group",),
    ),
    Metric(
        "mqbroker_subscriptions",
        "Push subscriptions; open and disabled ones are not called.",
        lambda _: [((state,), count) for state, count in subscription_registry.states().items()],
        labels=("state",),
    ),
    Metric(
        "mqbroker_delay_backlog",
        "Messages that wait at a delay level.",
        lambda _: [((str(row.level),), row.backlog) for row in scheduling_stats.backlogs()],
        labels=("level",),
    ),
    Metric(
        "mqbroker_timers",
        "Messages that wait for a time of their own, counted to a million.",
        lambda _: [((), scheduling_stats.timers())],
    ),
    Metric(
        "mqbroker_delay_oldest_seconds",
        "Time for which the message has waited that has waited longest, at a delay level or as a timer.",
        _oldest,
        labels=("level",),
    ),
    Metric(
        "mqbroker_delay_next_due_seconds",
        "Time until the next message is due at a delay level or as a timer; below zero it is overdue.",
        _next_due,
        labels=("level",),
    ),
    Metric(
        "mqbroker_delay_lateness_seconds",
        "How late the releases of the last hour were, at a delay level or as timers: from due to visible.",
        _lateness,
        labels=("level", "quantile"),
    ),
    Metric(
        "mqbroker_delay_released_last_hour",
        "Releases of the last hour, at a delay level or as timers.",
        lambda reading: [((level,), summary.released) for level, summary in reading.late.items()],
        labels=("level",),
    ),
    Metric(
        "mqbroker_delay_forecast",
        "Messages that become due within the coming minute, or hour, at a delay level or as timers.",
        _forecast,
        labels=("level", "within"),
    ),
    Metric(
        "mqbroker_key_refused_total",
        "Requests that the limits of an API key refused.",
        lambda reading: [((key.name,), key.refused) for key in reading.limited_keys],
        labels=("api_key",),
        counter=True,
    ),
    Metric(
        "mqbroker_key_limit",
        "Limits of an API key: messages_per_second and bytes_per_second in each web process, max_undecided in all.",
        _key_limits,
        labels=("api_key", "limit"),
    ),
    Metric(
        "mqbroker_segments",
        "Segments of the log; the ready one is what the next roll opens.",
        lambda _: [((state,), count) for state, count in store_stats.segments().items()],
        labels=("state",),
    ),
)


def exposition() -> bytes:
    """All metrics now, in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(Reading())
    return generate_latest(registry)
