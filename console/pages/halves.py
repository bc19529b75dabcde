"""Pages of transactions without an end: the pending and the discarded."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.pages import counts, frame, readings
from console.pages.counts import COUNT_LIMIT
from store import registry as topic_registry
from store.reading import previews
from store.stats import now
from transactions import registry, schedule
from transactions.answers import TransactionSummary
from transactions.reads import listing, summary
from transactions.reads.listing import DiscardedPlace, DuePlace, Wanted

PAGE = 50
AGES = ((60, "1 minute"), (600, "10 minutes"), (3600, "1 hour"), (6 * 3600, "6 hours"), (86400, "1 day"))
# What a filter offers to pick from; any other name can still be typed.
OFFERED = 200


@dataclass(frozen=True)
class Asked:
    """What the address asks for; what is left empty asks for all."""

    producer_group: str
    topic: str
    older_than_seconds: int
    after: str

    def __bool__(self) -> bool:
        return bool(self.producer_group or self.topic or self.older_than_seconds)

    def wanted(self, state: str | None) -> Wanted:
        """The transactions of a state that match; of any ended one with None."""
        return Wanted(state, self.producer_group or None, self.topic or None, self.older_than_seconds)


@require_GET
def pending(request: HttpRequest) -> HttpResponse:
    """Half messages that are not ended yet, the longest due for a check first."""
    asked = asked_for(request)
    wanted = asked.wanted("PREPARED")
    cursor = read_cursor(asked.after)
    groups = readings.shared(counts.pending)
    # Thousands of pages of halves whose group has no endpoint would hide those that are being asked about.
    unasked = [group for group in groups if group.checking.unasked]
    left_out = [] if asked or request.GET.get("all") or len(unasked) == len(groups) else unasked
    ids = [group.group_id for group in left_out]
    halves, after = listing.due(wanted, DuePlace(*cursor) if cursor else None, PAGE, ids)
    checking = {group.producer_group: group.checking for group in groups}
    return frame.show(
        request,
        "console/pending.html",
        "Pending half messages",
        now=now(),
        halves=[(half, checking.get(half.producer_group)) for half in halves],
        groups=groups,
        reasons=readings.shared(counts.reasons) if groups and not cursor else {},
        left_out=left_out,
        keys=keys_of(halves),
        **around(request, asked, wanted, after),
    )


@require_GET
def discarded(request: HttpRequest) -> HttpResponse:
    """Half messages that the checks gave up, the latest first."""
    asked = asked_for(request)
    wanted = asked.wanted("DISCARDED")
    cursor = read_cursor(asked.after)
    halves, after = listing.discarded(wanted, None, None, DiscardedPlace(*cursor) if cursor else None, PAGE)
    return frame.show(
        request,
        "console/discarded.html",
        "Discarded half messages",
        now=now(),
        halves=halves,
        reasons=summary.discarded(),
        reasons_limit=summary.MAX_DISCARDED,
        keys=keys_of(halves),
        **around(request, asked, wanted, after),
    )


def keys_of(halves: Sequence[TransactionSummary]) -> dict[int, list[str]]:
    """The keys of each transaction's first message, by its log offset."""
    return previews.keys([half.commit_log_offset for half in halves])


def asked_for(request: HttpRequest) -> Asked:
    """Which half messages the address asks for."""
    given = request.GET
    return Asked(
        producer_group=given.get("producer_group", "").strip(),
        topic=given.get("topic", "").strip(),
        older_than_seconds=min(frame.whole_number(request, "older_than_seconds"), listing.MAX_AGE_SECONDS),
        after=given.get("after", ""),
    )


def around(
    request: HttpRequest, asked: Asked, wanted: Wanted, after: DuePlace | DiscardedPlace | None
) -> dict[str, object]:
    """What stands around a list: the form of its filter, the count of what matches, and the way to the next page."""
    return {
        **form(request, asked),
        "count": counts.up_to(COUNT_LIMIT, listing.count_undecided(wanted, COUNT_LIMIT + 1)),
        "after": cursor_of(after) if after else "",
        "check_max": schedule.most_checks(),
        "auto_create": settings.AUTO_CREATE_TOPICS,
    }


def form(request: HttpRequest, asked: Asked) -> dict[str, object]:
    """The form that narrows a list: what it holds, what it offers, and the address without the place in the list."""
    return {
        "wanted": asked,
        "ages": AGES,
        "offered_topics": [topic.name for topic in topic_registry.page("", OFFERED)],
        "offered_groups": [group.name for group in registry.page("", OFFERED)],
        "query": frame.kept(request),
    }


def cursor_of(place: DuePlace | DiscardedPlace) -> str:
    """The place that a page goes on behind, as the address has it: a time and an id."""
    at, transaction_id = place
    return f"{at.isoformat()}_{transaction_id}"


def read_cursor(after: str) -> tuple[datetime, UUID] | None:
    """The time and the id that a page goes on behind. A cursor that cannot be read starts from the front."""
    moment, _, transaction_id = after.rpartition("_")
    try:
        parsed = datetime.fromisoformat(moment)
        return (parsed, UUID(transaction_id)) if parsed.tzinfo else None
    except ValueError:
        return None
