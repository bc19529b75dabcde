"""The figures of the history: reads the broker's numbers, and computes rates from the counters of the minute before."""

from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple

from access import namespaces as namespace_registry
from console.monitoring import stats
from delivery import stats as delivery_stats
from scheduling import lateness
from store import stats as store_stats
from store.cells import cells
from store.naming.namespaces import part_of
from store.naming.topics import is_system
from transactions import stats as transaction_stats

# The most names kept of each figure in a minute: the names with the highest values. 5 figures of 50 names take 67 MB a
# day.
MAX_NAMES = 50
# The most namespaces whose figures are recorded: the first by name. The console offers the same namespaces.
MAX_REGISTERED = 200
OF_NAMESPACES = ("namespace_in", "namespace_out")
MINUTE = 60
# The count of undecided transactions stops here: a larger number would not help an operator more.
MAX_UNDECIDED = 100_000

# Counters since the beginning, by figure and name.
Counters = dict[str, dict[str, int]]


class Figure(NamedTuple):
    """The value of a figure in a minute; `name` is empty for a figure of the whole broker."""

    figure: str
    name: str
    value: float


class Reading(NamedTuple):
    """One reading of the broker: counters, and figures that are not computed from counters."""

    counters: Counters
    figures: list[Figure]


def read() -> Reading:
    """The broker's present figures, of all cells together."""
    registered = [row.name for row in namespace_registry.page("", MAX_REGISTERED)]
    counters, figures = _of_consumers(registered)
    entries = _entries_by_topic()
    counters["stored"] = {"": store_stats.ever_stored()}
    counters["topic_in"] = entries
    counters["namespace_in"] = _by_namespace(entries, registered)
    counters["namespace_out"] = _by_namespace(counters["group_out"], registered)
    counters["in"] = {"": sum(entries.values())}
    return Reading(counters, [*figures, *_of_transactions(), *_of_releases()])


def rates(now: Counters, before: Mapping[str, Mapping[str, int]], seconds: float) -> Iterator[Figure]:
    """The rates per second of counters between two readings.

    `stored` is present in each recorded minute, other figures only when they are not 0. A counter without an earlier
    value has no rate yet. A counter that is lower than before (the topic was deleted and created again) has the rate 0.
    """
    for figure, counted in now.items():
        known = before.get(figure, {})
        found = [
            Figure(figure, name, max(0, count - known[name]) / seconds)
            for name, count in counted.items()
            if name in known
        ]
        most = MAX_REGISTERED if figure in OF_NAMESPACES else MAX_NAMES
        yield from highest((one for one in found if one.value or figure == "stored"), most)


def highest(figures: Iterator[Figure], most: int = MAX_NAMES) -> list[Figure]:
    """The figures with the highest values."""
    return nlargest(most, figures, key=lambda one: one.value)


def _entries_by_topic() -> dict[str, int]:
    """The number of entries that each users' topic ever had; for a moved topic the larger number of its cells."""
    found: dict[str, int] = {}
    for of_cell in cells.ask(store_stats.entries_by_topic).values():
        for topic, entries in of_cell.items():
            if not is_system(topic):
                found[topic] = max(found.get(topic, 0), entries)
    return found


def _by_namespace(counted: Mapping[str, int], registered: Sequence[str]) -> dict[str, int]:
    """The sums of the counters of topics or groups, by the namespace of their names."""
    found = dict.fromkeys(registered, 0)
    for name, count in counted.items():
        if (namespace := part_of(name)) in found:
            found[namespace] += count
    return found


def _of_consumers(registered: Sequence[str]) -> tuple[Counters, list[Figure]]:
    """The entries handed to groups, by group and by topic, and the lag of groups and of registered namespaces."""
    by_topic: dict[str, int] = {}
    by_group: dict[str, int] = {}
    lag: list[Figure] = []
    oldest: list[Figure] = []
    now = store_stats.now()
    for group in delivery_stats.by_urgency():
        name = group.group.name
        by_group[name] = sum(queue.next_offset for queue in group.queues)
        for queue in group.queues:
            if not is_system(queue.topic):
                by_topic[queue.topic] = by_topic.get(queue.topic, 0) + queue.next_offset
        lag.append(Figure("group_lag", name, group.lag))
        if (since := group.oldest_unacked_at) is not None:
            oldest.append(Figure("group_oldest", name, max(0.0, (now - since).total_seconds())))
    whole = [
        Figure("lag", "", sum(one.value for one in lag)),
        Figure("oldest", "", max((one.value for one in oldest), default=0.0)),
    ]
    counters = {"out": {"": sum(by_group.values())}, "topic_out": by_topic, "group_out": by_group}
    own = (figures for namespace in registered for figures in _of_namespace(namespace, lag, oldest))
    return counters, [*_set(whole), *highest(_set(lag)), *highest(_set(oldest)), *_set(own)]


def _of_namespace(namespace: str, lag: Sequence[Figure], oldest: Sequence[Figure]) -> Iterator[Figure]:
    """The lag of a namespace's groups."""
    lags, ages = ([one.value for one in of if part_of(one.name) == namespace] for of in (lag, oldest))
    yield Figure("namespace_lag", namespace, sum(lags))
    yield Figure("namespace_oldest", namespace, max(ages, default=0.0))


def _of_transactions() -> Iterator[Figure]:
    """Rates of begun and decided transactions, undecided transactions, and checks of a minute by outcome."""
    rates_now = dict(stats.now().last_minute.rates())
    for figure in ("halves", "commits", "rollbacks"):
        yield from _set([Figure(figure, "", rates_now[figure])])
    undecided = transaction_stats.undecided(MAX_UNDECIDED)
    yield from _set([Figure("undecided", "", undecided.pending + undecided.discarded)])
    # Checks from 2 minutes to 1 minute ago, because checks of the last minute may have no outcome yet.
    asked, latest = transaction_stats.checks(2 * MINUTE), transaction_stats.checks(MINUTE)
    yield from _set(Figure("checks", outcome, number - latest[outcome]) for outcome, number in asked.items())


def _of_releases() -> Iterator[Figure]:
    """The 99th percentile, in ms, of the lateness of the last minute's releases."""
    late_ms = lateness.of_all(MINUTE).p99_ms
    yield from _set([Figure("late_ms", "", late_ms or 0.0)])


def _set(figures: Iterator[Figure] | list[Figure]) -> Iterator[Figure]:
    """The figures that are not 0."""
    return (one for one in figures if one.value)
