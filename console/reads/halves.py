"""Half messages without a decision: those that are still asked about, and those that were discarded."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nsmallest
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet

from console.reads import names
from console.reads.counts import Count, up_to
from store.models import Topic
from transactions.models import Endpoint, HalfMessage, ProducerGroup

PAGE = 50
# Groups whose first rows are merged to one page, and how many of them one statement looks at.
GROUPS = 1000
GROUPS_PER_STATEMENT = 50
ENDPOINTS = 1000

SHOWN = (
    "transaction_id",
    "producer_group_id",
    "stored_at",
    "check_times",
    "next_check_at",
    "last_failure",
    "discarded_at",
    "message_ids",
    "topic_ids",
)

# A time and an id: a page goes on behind the row that has them.
Cursor = tuple[datetime, UUID]


@dataclass(frozen=True)
class Wanted:
    """Which half messages are asked for; what is left empty asks for all."""

    producer_group: str = ""
    topic: str = ""
    older_than_seconds: int = 0
    after: str = ""

    def __bool__(self) -> bool:
        return bool(self.producer_group or self.topic or self.older_than_seconds)


@dataclass(frozen=True)
class Half:
    """A half message as a row of a page; `obstacle` says why nobody can be asked about it."""

    transaction_id: UUID
    topics: list[str]
    messages: int
    producer_group: str
    checks_paused: bool
    obstacle: str | None
    stored_at: datetime
    check_times: int
    check_max: int
    next_check_at: datetime
    last_failure: str | None
    discarded_at: datetime | None


@dataclass(frozen=True)
class Page:
    """A page of half messages, how many match, and the cursor of the page after it (empty: there is none)."""

    halves: list[Half]
    count: Count
    after: str


def pending(wanted: Wanted, now: datetime) -> Page:
    """Half messages that wait for their decision, the longest due for a check first."""
    matching = narrowed(HalfMessage.objects.filter(discarded_at__isnull=True), wanted, now)
    rows = matching.only(*SHOWN)
    if cursor := read_cursor(wanted.after):
        due, transaction_id = cursor
        rows = rows.filter(next_check_at__gte=due).exclude(Q(next_check_at=due, transaction_id__lte=transaction_id))
    # Topics have no index: to find the few of one topic is one walk over the table, not one for each group.
    found = list(first_page(rows)) if wanted.topic else longest_due(rows, of_groups(wanted))
    return page(found, up_to(matching), "next_check_at")


def discarded(wanted: Wanted, now: datetime) -> Page:
    """Half messages that were given up by checks, the latest first."""
    matching = narrowed(HalfMessage.objects.filter(discarded_at__isnull=False), wanted, now)
    rows = matching.only(*SHOWN).order_by("-discarded_at", "-transaction_id")
    if cursor := read_cursor(wanted.after):
        gone, transaction_id = cursor
        rows = rows.filter(discarded_at__lte=gone).exclude(Q(discarded_at=gone, transaction_id__gte=transaction_id))
    return page(list(rows[: PAGE + 1]), up_to(matching), "discarded_at")


def narrowed(rows: QuerySet[HalfMessage], wanted: Wanted, now: datetime) -> QuerySet[HalfMessage]:
    """The rows of the wanted group, topic and age."""
    if wanted.producer_group:
        rows = rows.filter(producer_group_id__in=of_groups(wanted))
    if wanted.topic:
        rows = rows.filter(
            topic_ids__overlap=list(Topic.objects.filter(name=wanted.topic).values_list("id", flat=True))
        )
    if wanted.older_than_seconds:
        rows = rows.filter(stored_at__lte=now - timedelta(seconds=wanted.older_than_seconds))
    return rows


def of_groups(wanted: Wanted) -> list[int]:
    """The ids of the groups whose half messages are wanted."""
    groups = ProducerGroup.objects.order_by("id")
    if wanted.producer_group:
        groups = groups.filter(name=wanted.producer_group)
    return list(groups.values_list("id", flat=True)[:GROUPS])


def longest_due(rows: QuerySet[HalfMessage], groups: list[int]) -> list[HalfMessage]:
    """The rows that are the longest due, of all these groups together.

    The index of due checks has an order within each group, so each group gives its first, and those are merged.
    """
    firsts: list[HalfMessage] = []
    for start in range(0, len(groups), GROUPS_PER_STATEMENT):
        of_each = [rows.filter(producer_group_id=group) for group in groups[start : start + GROUPS_PER_STATEMENT]]
        first, *others = map(first_page, of_each)
        firsts += first.union(*others, all=True)
    return nsmallest(PAGE + 1, firsts, key=lambda half: (half.next_check_at, half.transaction_id))


def first_page(rows: QuerySet[HalfMessage]) -> QuerySet[HalfMessage]:
    """The rows of these that are the longest due, and one more, which says that there is a next page."""
    return rows.order_by("next_check_at", "transaction_id")[: PAGE + 1]


def page(found: list[HalfMessage], count: Count, ordered_by: str) -> Page:
    """The rows that fit a page, and the cursor that goes on behind them."""
    shown = found[:PAGE]
    after = ""
    if len(found) > PAGE:
        after = f"{getattr(shown[-1], ordered_by).isoformat()}_{shown[-1].transaction_id}"
    return Page(named(shown), count, after)


def read_cursor(after: str) -> Cursor | None:
    """The time and id a page goes on behind. A cursor that cannot be read starts from the front."""
    moment, _, transaction_id = after.rpartition("_")
    try:
        parsed = datetime.fromisoformat(moment)
        return (parsed, UUID(transaction_id)) if parsed.tzinfo else None
    except ValueError:
        return None


def named(halves: Iterable[HalfMessage]) -> list[Half]:
    """Half messages with the names of their topics and groups."""
    halves = list(halves)
    topics = names.of_topics(topic for half in halves for topic in half.topic_ids)
    groups = ProducerGroup.objects.in_bulk({half.producer_group_id for half in halves})
    in_the_way = obstacles(groups)
    return [
        one(half, topics, groups.get(half.producer_group_id), in_the_way.get(half.producer_group_id)) for half in halves
    ]


def one(half: HalfMessage, topics: dict[int, str], group: ProducerGroup | None, obstacle: str | None) -> Half:
    """A half message with the names it is known by."""
    return Half(
        transaction_id=half.transaction_id,
        topics=[topics.get(topic, str(topic)) for topic in dict.fromkeys(half.topic_ids)],
        messages=len(half.message_ids),
        producer_group=group.name if group else str(half.producer_group_id),
        checks_paused=bool(group and group.checks_paused),
        obstacle=obstacle,
        stored_at=half.stored_at,
        check_times=half.check_times,
        check_max=settings.TRANSACTION_CHECK_MAX,
        next_check_at=half.next_check_at,
        last_failure=half.last_failure,
        discarded_at=half.discarded_at,
    )


def obstacles(groups: Iterable[int]) -> dict[int, str]:
    """Why nobody of a group can be asked, for each of these groups that has nobody to ask."""
    states: dict[int, set[str]] = {group: set() for group in groups}
    for group, state in Endpoint.objects.filter(group_id__in=states).values_list("group_id", "state")[:ENDPOINTS]:
        states[group].add(state)
    found = {group: obstacle(kinds) for group, kinds in states.items()}
    return {group: words for group, words in found.items() if words}


def obstacle(states: set[str]) -> str | None:
    """Why endpoints in these states cannot be asked."""
    if not states:
        return "no endpoint is registered"
    if states <= {"open", "disabled"}:
        return f"no endpoint can be asked: all are {' or '.join(sorted(states))}"
    return None
