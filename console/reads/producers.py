"""Producer groups: what they have pending, and how their endpoints are."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, QuerySet, Subquery

from console.reads.counts import Count, up_to
from transactions.models import Endpoint, HalfMessage, ProducerGroup

PAGE = 25
# Per group of a page, so a page counts 25 times this at most.
PENDING_LIMIT = 10_000
ENDPOINTS = 100


@dataclass(frozen=True)
class Producers:
    """A producer group as a row."""

    group: ProducerGroup
    pending: Count
    oldest_pending_at: datetime | None
    endpoints: dict[str, int]


@dataclass(frozen=True)
class Page:
    """A page of producer groups by name, and the name the next page goes on behind (empty: there is none)."""

    groups: list[Producers]
    after: str


def page(after: str) -> Page:
    """Producer groups by name, from the first behind `after`."""
    found = list(with_oldest(ProducerGroup.objects.filter(name__gt=after).order_by("name")[: PAGE + 1]))
    shown = found[:PAGE]
    return Page([producers(group) for group in shown], shown[-1].name if len(found) > PAGE else "")


def find(name: str) -> Producers | None:
    """The producer group of this name."""
    group = with_oldest(ProducerGroup.objects.filter(name=name)).first()
    return producers(group) if group else None


def producers(group: ProducerGroup) -> Producers:
    """A group with what it has pending and the states of its endpoints."""
    states = group.endpoints.order_by("id").values_list("state", flat=True)[:ENDPOINTS]
    return Producers(
        group=group,
        pending=up_to(pending().filter(producer_group_id=group.id), PENDING_LIMIT),
        oldest_pending_at=oldest_pending_at(group),
        endpoints=dict(Counter(states)),
    )


def with_oldest(groups: QuerySet[ProducerGroup]) -> QuerySet[ProducerGroup]:
    """Groups with the time of their oldest pending half message, by the index of a group's halves."""
    oldest = pending().filter(producer_group_id=OuterRef("id")).order_by("stored_at").values("stored_at")[:1]
    return groups.annotate(oldest_pending_at=Subquery(oldest))


def oldest_pending_at(group: ProducerGroup) -> datetime | None:
    """What `with_oldest` has found for a group."""
    found: datetime | None = vars(group)["oldest_pending_at"]
    return found


def pending() -> QuerySet[HalfMessage]:
    """Half messages that wait for their decision."""
    return HalfMessage.objects.filter(discarded_at__isnull=True)


def endpoints(group: ProducerGroup) -> list[Endpoint]:
    """Where a group is asked; the secrets stay in the database."""
    return list(group.endpoints.defer("secret", "previous_secret").order_by("id")[:ENDPOINTS])
