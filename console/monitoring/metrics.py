"""The broker's metrics for Prometheus: each name once, with its meaning and its source.

Each scrape reads the metrics from the database, so they are equal at all web processes and survive a restart. Only the
metrics of `requests` are counted by the processes of one port, in shared memory.
"""

from collections.abc import Iterator
from functools import partial

from prometheus_client import CollectorRegistry, generate_latest

from access import keys
from console.monitoring import around, consumers, producers, requests, stats
from console.monitoring.scrape import TIMER, Metric, ReadOnce, Sample, Scrape, Shared
from delivery.push import registry as subscription_registry
from scheduling import stats as scheduling_stats
from store import stats as store_stats
from store.process import doors
from transactions import stats as transaction_stats

QUANTILES = {"0.5": "p50_ms", "0.99": "p99_ms"}


def _last_minute(_: ReadOnce) -> Iterator[Sample]:
    yield from (((figure,), per_second) for figure, per_second in stats.now().last_minute.rates())


def _lateness(reading: ReadOnce) -> Iterator[Sample]:
    for level, summary in reading.late.items():
        for quantile, name in QUANTILES.items():
            if (late_ms := getattr(summary, name)) is not None:
                yield (level, quantile), late_ms / 1000


def _ends(name: str, reading: ReadOnce) -> Iterator[Sample]:
    for level, ends in reading.delays.items():
        if (seconds := getattr(ends, name)) is not None:
            yield (level,), seconds


def _forecast(_: ReadOnce) -> Iterator[Sample]:
    coming = {str(level): minutes for level, minutes in scheduling_stats.level_forecast().items()}
    for level, minutes in (coming | {TIMER: scheduling_stats.timer_forecast()[0]}).items():
        yield (level, "minute"), minutes[0]
        yield (level, "hour"), sum(minutes)


def _key_limits(reading: ReadOnce) -> Iterator[Sample]:
    for key in reading.limited_keys:
        for name in keys.LIMIT_NAMES:
            limit = getattr(key, name)
            if limit is not None:
                yield (key.name, name), limit


METRICS = (
    Metric(
        "mqbroker_messages_stored_total",
        "Messages that were ever stored in the commit log, including half messages.",
        lambda _: [((), store_stats.ever_stored())],
        counter=True,
    ),
    Metric(
        "mqbroker_entries_total",
        "Entries that ever became visible in a topic; in the schedule topic: entries that ever waited at a delay "
        "level.",
        lambda reading: [((one,), count) for one, count in store_stats.entries_by_topic(reading.namespace).items()],
        labels=("topic",),
        counter=True,
    ),
    Metric(
        "mqbroker_operations_total",
        "Events of transactions that ever happened: commits, rollbacks, unknowns, discards and resumes.",
        lambda _: [((), transaction_stats.operations_ever())],
        counter=True,
    ),
    Shared(
        "mqbroker_per_second",
        "Rates of the last minute, as in /v1/stats: messages, entries, halves, commits, rollbacks, discarded, checks.",
        _last_minute,
        labels=("figure",),
    ),
    *producers.METRICS,
    *consumers.METRICS,
    Metric(
        "mqbroker_subscriptions",
        "Push subscriptions; open and disabled ones are not called.",
        lambda _: [((state,), count) for state, count in subscription_registry.states().items()],
        labels=("state",),
    ),
    Metric(
        "mqbroker_delay_backlog",
        "Messages that wait at a delay level.",
        lambda _: [((str(level),), backlog) for level, backlog in scheduling_stats.backlogs().items()],
        labels=("level",),
    ),
    Metric(
        "mqbroker_timers",
        "Messages that wait in a timer, counted to a million.",
        lambda _: [((), scheduling_stats.timers())],
    ),
    Metric(
        "mqbroker_delay_oldest_seconds",
        "Time for which the oldest waiting message has waited, at a delay level or in a timer.",
        partial(_ends, "oldest_seconds"),
        labels=("level",),
    ),
    Metric(
        "mqbroker_delay_next_due_seconds",
        "Time until the next message is due, at a delay level or in a timer; below zero if the message is overdue.",
        partial(_ends, "next_due_seconds"),
        labels=("level",),
    ),
    Metric(
        "mqbroker_delay_lateness_seconds",
        "Time from due to visible of the releases of the last hour, at a delay level or from timers.",
        _lateness,
        labels=("level", "quantile"),
    ),
    Metric(
        "mqbroker_delay_released_last_hour",
        "Releases of the last hour, at a delay level or from timers.",
        lambda reading: [((level,), summary.released) for level, summary in reading.late.items()],
        labels=("level",),
    ),
    Metric(
        "mqbroker_delay_forecast",
        "Messages that become due within the coming minute or hour, at a delay level or in timers.",
        _forecast,
        labels=("level", "within"),
    ),
    Shared(
        "mqbroker_key_refused_total",
        "Requests that the limits of an API key refused.",
        lambda reading: [((key.name,), key.refused) for key in reading.limited_keys],
        labels=("api_key",),
        counter=True,
    ),
    Shared(
        "mqbroker_key_limit",
        "Limits of an API key: messages_per_second and bytes_per_second of each web process, max_undecided of all "
        "together.",
        _key_limits,
        labels=("api_key", "limit"),
    ),
    Metric(
        "mqbroker_segments",
        "Segments of the log; the next roll opens the segment that is ready.",
        lambda _: [((state,), count) for state, count in store_stats.segments().items()],
        labels=("state",),
    ),
    Metric(
        "mqbroker_export_rows",
        "Rows in the latest export to a folder, by table.",
        lambda reading: [((one.target, table), rows) for one in reading.exported for table, rows in one.rows.items()],
        labels=("folder", "table"),
    ),
    Metric(
        "mqbroker_export_lag_messages",
        "Log offsets that were assigned since the latest export to a folder.",
        lambda reading: [((one.target,), one.messages_behind) for one in reading.exported],
        labels=("folder",),
    ),
    Metric(
        "mqbroker_export_lag_seconds",
        "Time since the moment whose data the latest export to a folder contains.",
        lambda reading: [((one.target,), one.seconds_behind) for one in reading.exported],
        labels=("folder",),
    ),
    Metric(
        "mqbroker_export_last_success_timestamp_seconds",
        "When the latest export to a folder was complete, as Unix time.",
        lambda reading: [((one.target,), one.finished_at.timestamp()) for one in reading.exported],
        labels=("folder",),
    ),
    Metric(
        *("mqbroker_segments_awaiting_export", "Closed segments that no export holds whole."),
        lambda reading: [((), reading.awaited.waiting)],
    ),
    Metric(
        "mqbroker_segments_dropped_unexported_total",
        "Segments that retention dropped, for lack of room, before an export contained them.",
        lambda reading: [((), reading.awaited.dropped)],
        counter=True,
    ),
    *doors.added(doors.To.METRICS),
    *around.METRICS,
    requests.REQUESTS,
)


def exposition(namespace: str | None = None) -> bytes:
    """The present values of all metrics in Prometheus' text format. For a namespace: only the metrics of its topics and
    groups, with bare names.
    """
    registry = CollectorRegistry()
    registry.register(Scrape(METRICS, namespace))
    if namespace is None:
        registry.register(requests.Histogram())
    return generate_latest(registry)
