"""Pages of producer groups with their endpoints, and of consumer groups with their lag."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.pages import counts, frame
from console.pages.counts import GROUP_LIMIT, Count
from delivery import registry as consumer_registry
from delivery import stats as delivery_stats
from store import progress
from store.stats import now
from transactions import endpoints, registry
from transactions import stats as transaction_stats
from transactions.models import ProducerGroup
from transactions.rows import PendingOfGroup

PAGE = 25
ENDPOINTS = 100


@dataclass(frozen=True)
class Producers:
    """A producer group with its pending transactions and the states of its endpoints."""

    group: ProducerGroup
    undecided: PendingOfGroup
    endpoints: dict[str, int]

    @property
    def pending(self) -> Count:
        """The pending transactions, counted to GROUP_LIMIT."""
        return counts.up_to(GROUP_LIMIT, self.undecided.pending)


def producers(groups: list[ProducerGroup]) -> list[Producers]:
    """These groups as rows of a page."""
    ids = [group.id for group in groups]
    pending = transaction_stats.pending_of(ids, GROUP_LIMIT + 1)
    states = transaction_stats.endpoint_states(ids)
    return [Producers(group, pending[group.id], states.get(group.id, {})) for group in groups]


@require_GET
def all_producers(request: HttpRequest) -> HttpResponse:
    """Producer groups by name."""
    page = counts.part(registry.page(request.GET.get("after", ""), PAGE + 1), PAGE)
    shown = {"now": now(), "groups": producers(page.rows), "after": page.after}
    return frame.show(request, "console/producer_groups.html", "Producer groups", **shown)


@require_GET
def one_producer(request: HttpRequest, name: str) -> HttpResponse:
    """One producer group: its pending transactions, and the health of its endpoints."""
    group = registry.named(name)
    if group is None:
        return frame.not_there(request, f"Producer group {name} does not exist.", "producer_groups")
    return frame.show(
        request,
        "console/producer_group.html",
        f"Producer group {name}",
        now=now(),
        producers=producers([group])[0],
        endpoints=endpoints.page(group, 0, ENDPOINTS),
    )


@require_GET
def all_consumers(request: HttpRequest) -> HttpResponse:
    """Consumer groups by name."""
    page = counts.part(consumer_registry.page(request.GET.get("after", ""), PAGE + 1), PAGE)
    groups = delivery_stats.of_groups(page.rows)
    shown = {"now": now(), "groups": groups, "after": page.after}
    return frame.show(request, "console/consumer_groups.html", "Consumer groups", **shown)


@require_GET
def one_consumer(request: HttpRequest, name: str) -> HttpResponse:
    """One consumer group: its progress and lag in each queue."""
    group = consumer_registry.named(name)
    if group is None:
        return frame.not_there(request, f"Consumer group {name} does not exist.", "consumer_groups")
    return frame.show(
        request,
        "console/consumer_group.html",
        f"Consumer group {name}",
        now=now(),
        consumers=delivery_stats.of_groups([group])[0],
        queues_limit=progress.MAX_QUEUES,
    )
