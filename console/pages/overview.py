"""The overview: the findings that need attention, then the broker's state at a glance."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from console.monitoring import attention, stats, system
from console.monitoring.attention import Attention
from console.monitoring.counts import COUNT_LIMIT, Count, up_to
from console.pages import counts, drawing, frame, readings
from delivery import stats as delivery_stats
from delivery.stats import GroupStats
from scheduling import lateness
from scheduling import stats as scheduling_stats
from store import stats as store_stats
from store.cells import cells
from store.naming import namespaces
from transactions import stats as transaction_stats
from transactions.reads import last_hour
from transactions.reads.last_hour import LastHour

CONSUMER_GROUPS = 10
# The width of the chart, in minutes, and the width of one bar, in seconds.
MINUTES = 60
MINUTE_SECONDS = 60

Figures = dict[str, Any]


def figures(request: HttpRequest) -> Figures:
    """The numbers of the overview, of all or of a namespace.

    Ages are computed for the present moment, not for the time of the reading.
    """
    narrowed = frame.within(request)
    namespace = narrowed["namespace"]
    found, age = readings.aged(read if namespace is None else OfNamespace(namespace))
    now = found["read_at"] + timedelta(seconds=age)
    query = f"?{urlencode({'namespace': namespace})}" if namespace else ""
    shown = {**found, **narrowed, "narrowing": query}
    return {**shown, "now": now, "broker": frame.address(request), "missing": cells.missing()}


def read() -> Figures:
    """The numbers of the overview, from the apps' stats."""
    return {
        **of_names(None),
        **rates(),
        **delays(),
        "checks": [(outcome, number) for outcome, number in transaction_stats.checks().items() if number],
    }


@dataclass(frozen=True)
class OfNamespace:
    """Reads the numbers of the overview that exist for a namespace."""

    namespace: str

    def __call__(self) -> Figures:
        own = stats.of_namespace(self.namespace)
        entries, per_second = own.totals["entries"], own.last_minute["entries"]["per_second"]
        return {**of_names(self.namespace), "entries": entries, "entries_per_second": per_second}


def of_names(namespace: str | None) -> Figures:
    """The numbers about all topics and groups, or about a namespace's topics and groups."""
    facts = attention.Facts(
        now=store_stats.now(),
        undecided=transaction_stats.undecided(COUNT_LIMIT + 1, namespace),
        pending=[
            one
            for one in readings.shared(counts.pending)
            if namespace in (None, namespaces.part_of(one.producer_group))
        ],
        waits=attention.waits() if namespace is None else (),
        groups=delivery_stats.by_urgency(namespace),
        system=readings.shared(system.read),
        namespace=namespace,
    )
    undecided = facts.undecided
    return {
        "read_at": facts.now,
        "attention": [(one, page_of(one)) for one in attention.found(facts)],
        "pending": up_to(COUNT_LIMIT, undecided.pending),
        "oldest_pending_at": undecided.oldest_pending_at,
        "discarded": up_to(COUNT_LIMIT, undecided.discarded),
        **ends(namespace),
        **consumers(facts.groups),
        "auto_create": settings.AUTO_CREATE_TOPICS,
    }


def page_of(one: Attention) -> str:
    """The address of the page that shows a finding."""
    if one.about == "pending":
        return f"{reverse('admin:pending')}?{urlencode({'producer_group': one.name})}"
    return reverse(f"admin:{one.about}", args=(one.name,) if one.name else ())


def ends(namespace: str | None) -> Figures:
    """The tiles and the chart of the last hour's ends."""
    hour = last_hour.read(namespace)
    data, options = chart(hour)
    return {
        "ends": hour,
        "committed": Count(sum(minute.commits for minute in hour.minutes), not hour.whole),
        "rolled_back": Count(sum(minute.rollbacks for minute in hour.minutes), not hour.whole),
        "chart": data,
        "chart_options": options,
        "operations_limit": transaction_stats.MAX_COUNTED_OPERATIONS,
    }


def rates() -> Figures:
    """The number of kept messages, and the messages per second of the last minute."""
    messages = store_stats.messages((MINUTE_SECONDS,))
    return {
        "stored": messages.kept,
        "stored_per_second": messages.within[MINUTE_SECONDS] / MINUTE_SECONDS,
        "ever_stored": store_stats.ever_stored(),
    }


def delays() -> Figures:
    """Messages that wait for a delay level or as timers, and how late the releases of the last hour were."""
    timers = scheduling_stats.timers()
    backlog = sum(scheduling_stats.backlogs().values())
    late = [found.p99_ms for found in lateness.of_last_hour().values() if found.p99_ms is not None]
    return {
        "delayed": Count(backlog + timers, timers >= scheduling_stats.MAX_TIMERS),
        "late_ms": max(late, default=None),
    }


def consumers(groups: Sequence[GroupStats]) -> Figures:
    """The table of the consumer groups that need attention first, and how many are behind."""
    return {
        "consumer_groups": groups[:CONSUMER_GROUPS],
        "more_consumer_groups": len(groups) > CONSUMER_GROUPS,
        "behind": sum(group.lag > 0 for group in groups),
    }


def chart(hour: LastHour) -> tuple[str, str]:
    """The chart of the hour's ends, with a place for each minute: data and options."""
    minutes = minutes_to(hour.until)
    labels = [minute.strftime("%H:%M") for minute in minutes]
    commits = {minute.minute: minute.commits for minute in hour.minutes}
    rollbacks = {minute.minute: minute.rollbacks for minute in hour.minutes}
    series = {
        name: [ended.get(minute, 0) for minute in minutes]
        for name, ended in (("committed", commits), ("rolled back", rollbacks))
    }
    return drawing.bars(labels, series), drawing.options(labels, series, stacked=True, legend=False)


def minutes_to(until: datetime) -> list[datetime]:
    """The minute of `until` and the MINUTES minutes before it, which contain the hour before `until`."""
    last = until.replace(second=0, microsecond=0)
    return [last - timedelta(minutes=ago) for ago in range(MINUTES, -1, -1)]
