"""Pages of producer groups with their endpoints, and of consumer groups with their lag."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.monitoring.counts import GROUP_LIMIT, Count, up_to
from console.pages import frame
from delivery import registry as consumer_registry
from delivery import stats as delivery_stats
from delivery.limits import waits
from delivery.retries import retrying
from delivery.stats import GroupStats
from store.naming.namespaces import part_of
from store.notices import presence
from store.reading import progress
from store.stats import now
from transactions import endpoints, registry
from transactions import stats as transaction_stats
from transactions.models import ProducerGroup
from transactions.operations import totals
from transactions.reads import health
from transactions.rows import PendingOfGroup

PAGE = 25
ENDPOINTS = 100
# The most groups in a list sorted by urgency, which has only one page.
SORTED = 50
SORTS: dict[str, Callable[[GroupStats], Any]] = {
    "lag": lambda group: (-group.lag, group.group.name),
    "oldest": GroupStats.urgency,
}


@dataclass(frozen=True)
class Producers:
    """A producer group with its pending transactions, the states of its endpoints, and whether it can be asked."""

    group: ProducerGroup
    undecided: PendingOfGroup
    endpoints: Mapping[str, int]
    checking: health.Checking

    @property
    def pending(self) -> Count:
        """The number of pending transactions, counted up to GROUP_LIMIT."""
        return up_to(GROUP_LIMIT, self.undecided.pending)


def producers(groups: list[ProducerGroup]) -> list[Producers]:
    """These groups as rows of a page."""
    ids = [group.id for group in groups]
    pending = transaction_stats.pending_of(ids, GROUP_LIMIT + 1)
    states = health.states(ids)
    checking = health.checking(group.name for group in groups)
    # A group may have been deleted since its name was read.
    gone = health.Checking(paused=False, obstacle=None)
    return [
        Producers(group, pending[group.id], states.get(group.id, {}), checking.get(group.name, gone))
        for group in groups
    ]


@require_GET
def all_producers(request: HttpRequest) -> HttpResponse:
    """Producer groups by name."""
    groups, shown = frame.by_name(request, registry.page, PAGE)
    return frame.show(request, "console/producer_groups.html", "Producer groups", groups=producers(groups), **shown)


@require_GET
def one_producer(request: HttpRequest, name: str) -> HttpResponse:
    """The page of one producer group: its pending transactions, and the health of its endpoints."""
    group = registry.named(name)
    if group is None:
        return frame.not_there(request, f"Producer group {name} does not exist.", "producer_groups")
    [shown] = producers([group])
    return frame.show(
        request,
        "console/producer_group.html",
        f"Producer group {name}",
        now=now(),
        producers=shown,
        checking=shown.checking,
        ends=totals.of_group(name),
        endpoints=endpoints.page(group, 0, ENDPOINTS),
    )


@require_GET
def all_consumers(request: HttpRequest) -> HttpResponse:
    """Consumer groups by name; or by the age of their oldest unacked message, the oldest first."""
    by = request.GET.get("by", "")
    if by in SORTS:
        narrowing = frame.narrowing(request)
        matching, namespace = narrowing["matching"].lower(), narrowing["namespace"]
        groups = [group for group in delivery_stats.by_urgency() if matching in group.group.name.lower()]
        groups = [group for group in groups if namespace in (None, part_of(group.group.name))]
        shown = {"now": now(), "after": "", "query": frame.kept(request), "of": len(groups), **narrowing}
        groups = sorted(groups, key=SORTS[by])[:SORTED]
    else:
        rows, shown = frame.by_name(request, consumer_registry.page, PAGE)
        groups = delivery_stats.of_groups(rows)
    shown |= {"by": by, "carried": {"by": by} if by in SORTS else {}, "unsorted": frame.kept(request, "by")}
    return frame.show(request, "console/consumer_groups.html", "Consumer groups", groups=groups, **shown)


@require_GET
def one_consumer(request: HttpRequest, name: str) -> HttpResponse:
    """The page of one consumer group: its progress and lag in each queue."""
    group = consumer_registry.named(name)
    if group is None:
        return frame.not_there(request, f"Consumer group {name} does not exist.", "consumer_groups")
    consumers = delivery_stats.of_groups([group])[0]
    return frame.show(
        request,
        "console/consumer_group.html",
        f"Consumer group {name}",
        now=now(),
        consumers=consumers,
        asking=presence.of_groups("consumer", [name]).get(name),
        standing=retrying.standing([group], 0) if consumers.retrying_by_topic else [],
        queues_limit=progress.MAX_QUEUES,
        limits=waits.described(group.limits),
        at_limit=waits.of_group(group.id, group.limits, is_ordered=group.ordered),
    )
