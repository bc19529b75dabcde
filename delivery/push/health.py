"""The health of subscriptions for operators, read in the cell of the topic, because that cell calls the server."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q

from delivery.models import Subscription
from store import registry as topic_registry
from store.cells import cells
from store.db import databases
from store.models import Topic
from store.naming import namespaces
from store.process import runtime
from store.process.runtime import CONTROL

# Subscriptions that are not healthy in some cell. `ailing` keeps only subscriptions that are not healthy in the cell of
# their topic.
ILL = ~Q(state="healthy") & Q(paused=False)
MAX_ILL = 1000
WORST_FIRST = ("failing_since", "name")


def ailing(count: int, namespace: str | None = None) -> Sequence[Subscription]:
    """The first `count` subscriptions whose servers are not called because they fail, of all or of a namespace."""
    with cells.leaving_out():
        ill = ILL | Q(id__in={id_ for ids in cells.ask_others(_ill_of_cell).values() for id_ in ids})
    found = Subscription.objects.filter(ill, namespaces.within(namespace)).order_by(*WORST_FIRST)[:MAX_ILL]
    rows = [row for row in show(list(found)) if row.state != "healthy"]
    return sorted(rows, key=lambda row: (row.failing_since is None, row.failing_since, row.name))[:count]


def show(rows: Sequence[Subscription]) -> Sequence[Subscription]:
    """Subscriptions of the control with the health in their topics' cells. A cell that does not answer is left out."""
    with cells.leaving_out():
        found = cells.ask_others(lambda: _of_cell([row.id for row in rows])) if rows else {}
    if found:
        cell_of = dict(Topic.objects.filter(name__in={row.topic_name for row in rows}).values_list("name", "cell_id"))
        for row in rows:
            _set_health(row, found.get(cell_of.get(row.topic_name, CONTROL), {}))
    return rows


def of_one(subscription: Subscription) -> Subscription:
    """The subscription with its health in its topic's cell, whose processes call the server. Raises CellAway."""
    if cell := runtime.placement.of_topic(subscription.topic_name, topic_registry.named):
        _set_health(subscription, cells.at(cell, lambda: _of_cell([subscription.id])))
    return subscription


def _ill_of_cell() -> list[int]:
    ill = Subscription.objects.using(databases.here()).filter(ILL)
    return list(ill.order_by(*WORST_FIRST).values_list("id", flat=True)[:MAX_ILL])


def _of_cell(ids: Sequence[int]) -> Mapping[int, Mapping[str, Any]]:
    here = Subscription.objects.using(databases.here()).filter(id__in=ids)
    return {row["id"]: row for row in here.values("id", *Subscription.of_each_cell)}


def _set_health(subscription: Subscription, found: Mapping[int, Mapping[str, Any]]) -> None:
    for name, value in found.get(subscription.id, {}).items():
        setattr(subscription, name, value)
