"""The page of namespaces: the sums of each, its limits, and links to its lists."""

from collections import Counter
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from access import namespaces
from console.monitoring.counts import COUNT_LIMIT, Count, up_to
from console.pages import frame
from delivery import stats as delivery_stats
from delivery.dead_letters import lists as dead_letters
from delivery.stats import GroupStats
from store import registry, stats
from store.models import Namespace
from store.naming.namespaces import part_of
from transactions.reads import undecided
from transactions.reads.listing import Wanted

PAGE = 25
# The most topics of a namespace, and queues of a topic, whose entries are summed.
TOPICS = 200
QUEUES = 64


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of a namespace. A Count shows whether counting stopped at its limit."""

    row: Namespace
    topics: Count
    entries: Count
    pending: Count
    discarded: Count
    groups: int
    lag: int
    dead_letters: int

    @property
    def limits(self) -> list[tuple[str, int]]:
        """The limits that are set, each with its label."""
        found = ((name.replace("_", " "), getattr(self.row, name)) for name in namespaces.LIMIT_NAMES)
        return [(name, limit) for name, limit in found if limit is not None]

    @property
    def query(self) -> str:
        """The query that filters a list by this namespace."""
        return urlencode({"namespace": self.row.name})


@require_GET
def all_namespaces(request: HttpRequest) -> HttpResponse:
    """Namespaces by name, with their sums."""
    found, shown = frame.by_name(request, namespaces.page, PAGE, in_namespaces=False)
    groups, letters = delivery_stats.by_urgency(), Counter[str]()
    for of_group in dead_letters.groups():
        letters[part_of(of_group.group_name)] += of_group.letters
    return frame.show(
        request,
        "console/namespaces.html",
        "Namespaces",
        rows=[sums(row, [one for one in groups if part_of(one.group.name) == row.name], letters) for row in found],
        **shown,
    )


def sums(row: Namespace, groups: list[GroupStats], letters: Counter[str]) -> Sums:
    """The sums of a namespace, made of its consumer groups' numbers and of the numbers of dead letters."""
    topics = registry.page_of_users("", TOPICS + 1, namespace=row.name)
    held = stats.held_by(topics[:TOPICS], QUEUES)
    is_more = len(topics) > TOPICS
    pending, discarded = (
        up_to(COUNT_LIMIT, undecided.count(Wanted(state, namespace=row.name), COUNT_LIMIT + 1))
        for state in ("PREPARED", "DISCARDED")
    )
    return Sums(
        row,
        topics=Count(min(len(topics), TOPICS), is_more),
        entries=Count(sum(one.entries for one in held), is_more or any(one.partial for one in held)),
        pending=pending,
        discarded=discarded,
        groups=len(groups),
        lag=sum(one.lag for one in groups),
        dead_letters=letters[row.name],
    )
