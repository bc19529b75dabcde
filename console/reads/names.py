"""Names of topics and groups: for rows that hold only ids, and for filters to offer."""

from collections.abc import Iterable

from store.models import Topic
from transactions.models import ProducerGroup

# What a filter offers to pick from; any other name can still be typed.
OFFERED = 200


def of_topics(ids: Iterable[int]) -> dict[int, str]:
    """The name of each of these topics; one that is gone has none."""
    return dict(Topic.objects.filter(id__in=set(ids)).values_list("id", "name"))


def offered_topics() -> list[str]:
    """The first topics by name."""
    return list(Topic.objects.order_by("name").values_list("name", flat=True)[:OFFERED])


def offered_producer_groups() -> list[str]:
    """The first producer groups by name."""
    return list(ProducerGroup.objects.order_by("name").values_list("name", flat=True)[:OFFERED])
