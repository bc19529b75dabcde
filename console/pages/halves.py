"""Pages of transactions without an end: pending transactions and discarded transactions."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.monitoring.counts import COUNT_LIMIT, up_to
from console.pages import counts, frame, readings
from store import registry as topic_registry
from store.naming.namespaces import part_of
from store.reading import cursors
from store.stats import now
from transactions import registry, schedule
from transactions.reads import listing, summary, undecided
from transactions.reads.listing import Page, Wanted
from transactions.reads.undecided import DiscardedCursor, DueCursor

PAGE = 50
AGES = ((60, "1 minute"), (600, "10 minutes"), (3600, "1 hour"), (6 * 3600, "6 hours"), (86400, "1 day"))
# The most names that a filter offers; any other name can be typed.
OFFERED = 200


@dataclass(frozen=True)
class Asked:
    """The filter in the address; an empty field is no condition."""

    producer_group: str
    topic: str
    older_than_seconds: int
    after: str
    namespace: str | None = None

    def __bool__(self) -> bool:
        return bool(self.producer_group or self.topic or self.older_than_seconds or self.namespace)

    def has(self, producer_group: str) -> bool:
        """Whether a producer group is in the filter's namespace. The sums of the page only count such groups."""
        return self.namespace in (None, part_of(producer_group))

    def wanted(self, state: str | None) -> Wanted:
        """The filter for transactions of one state; None: all transactions that have ended."""
        named = self.producer_group or None, self.topic or None
        return Wanted(state, *named, self.older_than_seconds, self.namespace)


@require_GET
def pending(request: HttpRequest) -> HttpResponse:
    """Half messages that are not ended yet, the longest due for a check first."""
    asked = asked_for(request)
    wanted = asked.wanted("PREPARED")
    after = frame.after(request, DueCursor)
    groups = [one for one in readings.shared(counts.pending) if asked.has(one.producer_group)]
    # Left out: the half messages of groups without an endpoint may fill thousands of pages, and would hide the checked
    # ones.
    unasked = [group for group in groups if group.checking.unasked]
    passed_over = [] if asked or request.GET.get("all") or len(unasked) == len(groups) else unasked
    ids = [group.group_id for group in passed_over]
    page = undecided.due(wanted, after, PAGE, ids)
    checking = {group.producer_group: group.checking for group in groups}
    return frame.show(
        request,
        "console/pending.html",
        "Pending half messages",
        now=now(),
        halves=[(half, checking.get(half.producer_group)) for half in page.rows],
        groups=groups,
        reasons=readings.shared(counts.reasons) if groups and not after else {},
        passed_over=passed_over,
        keys=listing.keys_of(page),
        **around(request, asked, wanted, page),
    )


@require_GET
def discarded(request: HttpRequest) -> HttpResponse:
    """Discarded half messages, the latest first."""
    asked = asked_for(request)
    wanted = asked.wanted("DISCARDED")
    page = undecided.discarded(wanted, None, None, frame.after(request, DiscardedCursor), PAGE)
    return frame.show(
        request,
        "console/discarded.html",
        "Discarded half messages",
        now=now(),
        halves=page.rows,
        reasons=[one for one in summary.discarded() if asked.has(one.producer_group)],
        reasons_limit=summary.MAX_DISCARDED,
        keys=listing.keys_of(page),
        **around(request, asked, wanted, page),
    )


def asked_for(request: HttpRequest) -> Asked:
    """The filter that the address of the page gives."""
    given = request.GET
    return Asked(
        producer_group=given.get("producer_group", "").strip(),
        topic=given.get("topic", "").strip(),
        older_than_seconds=min(frame.whole_number(request, "older_than_seconds"), listing.MAX_AGE_SECONDS),
        after=given.get("after", ""),
        namespace=given.get("namespace", "").strip() or None,
    )


def around(request: HttpRequest, asked: Asked, wanted: Wanted, page: Page[Any]) -> dict[str, object]:
    """The parts around a list: the filter's form, the number of matches, and the link to the next page."""
    return {
        **form(request, asked),
        "count": up_to(COUNT_LIMIT, undecided.count(wanted, COUNT_LIMIT + 1)),
        "after": cursors.encode_each(page.after) or "",
        "check_max": schedule.most_checks(),
        "auto_create": settings.AUTO_CREATE_TOPICS,
    }


def form(request: HttpRequest, asked: Asked) -> dict[str, object]:
    """The filter's form: its values, the offered names, and the address without the cursor."""
    return {
        "wanted": asked,
        "ages": AGES,
        "offered_topics": [topic.name for topic in topic_registry.page("", OFFERED)],
        "offered_groups": [group.name for group in registry.page("", OFFERED)],
        "query": frame.kept(request),
        "namespaces": frame.within(request)["namespaces"],
    }
