"""What needs an operator's attention, the worst first: each a sentence that leads to where it is seen and repaired."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse

from console.pages import counts
from console.pages.counts import COUNT_LIMIT, GROUP_LIMIT
from delivery.dead_letters import lists as dead_letter_lists
from delivery.models import Subscription
from delivery.push import registry as subscription_registry
from scheduling.stats import Outermost
from transactions import health
from transactions.models import Endpoint
from transactions.reads.summary import Pending
from transactions.rows import AllUndecided

# Of one kind; the list that a line leads to has the others.
SHOWN = 5
# A release is late when its message was due for so long: pollers do it in 5 s.
LATE = timedelta(seconds=10)

# Pending transactions of a group without an endpoint need attention from this age on: until then its producers may end
# them, or receive their checks.
UNASKED = timedelta(minutes=5)


@dataclass(frozen=True)
class Attention:
    """One thing that needs attention: `urgent` when it does not mend itself. `since` is None where no row says it."""

    urgent: bool
    what: str
    detail: str
    page: str
    since: datetime | None = None


def discarded(found: AllUndecided) -> Iterator[Attention]:
    """Transactions that the checks gave up: only an operator decides them."""
    if found.discarded:
        count = counts.up_to(COUNT_LIMIT, found.discarded)
        what = f"{count} discarded transaction{'' if found.discarded == 1 else 's'}"
        yield Attention(True, what, "the checks brought no decision: resume or decide them", reverse("admin:discarded"))


def dead_letters() -> Iterator[Attention]:
    """Messages that consumer groups gave up."""
    for group in dead_letter_lists.groups()[:SHOWN]:
        what = f"{group.letters:,} dead letter{'' if group.letters == 1 else 's'} of {group.group_name}"
        page = reverse("admin:dead_letters_of", args=(group.group_name,))
        yield Attention(True, what, "given up after all retries: redrive them", page, group.last_dead_at)


def checks(groups: list[Pending], now: datetime) -> Iterator[Attention]:
    """Producer groups whose pending transactions cannot be asked about, and are not ended by their producers either."""
    old = [group for group in groups if group.oldest_pending_at < now - UNASKED]
    for group in [group for group in old if group.checking.obstacle or group.checking.paused][:SHOWN]:
        count = counts.up_to(GROUP_LIMIT, group.pending)
        detail = group.checking.obstacle or "its checks are paused"
        page = f"{reverse('admin:pending')}?{urlencode({'producer_group': group.producer_group})}"
        what = f"{count} pending of {group.producer_group} cannot be asked about"
        yield Attention(True, what, detail, page, group.oldest_pending_at)


def ailing_endpoints() -> Iterator[Attention]:
    """Endpoints that are not called, or answer what decides nothing."""
    for endpoint in health.ailing(SHOWN):
        page = reverse("admin:producer_group", args=(endpoint.group.name,))
        if endpoint.state == "healthy":
            what = f"An endpoint of {endpoint.group.name} answers, and decides nothing"
            detail = f"{endpoint.void_answers:,} void answers in a row; the last: {endpoint.last_answer}"
            yield Attention(True, what, detail, page, endpoint.void_since)
        else:
            what = f"An endpoint of {endpoint.group.name} is {endpoint.state}"
            yield Attention(endpoint.state == "disabled", what, failure(endpoint), page, endpoint.last_failure_at)


def ailing_subscriptions() -> Iterator[Attention]:
    """Subscriptions whose servers are not called."""
    for subscription in subscription_registry.ailing(SHOWN):
        page = reverse("admin:subscription", args=(subscription.name,))
        what = f"The subscription {subscription.name} is {subscription.state}"
        since = subscription.failing_since or subscription.last_failure_at
        yield Attention(subscription.state == "disabled", what, failure(subscription), page, since)


def failure(called: Endpoint | Subscription) -> str:
    """Where is called, and the last failure."""
    return f"{called.url}: {called.last_failure or 'no reason kept'}"


def late_releases(waits: list[Outermost]) -> Iterator[Attention]:
    """Delays that are over and not released: beat, workers and pollers are all away."""
    overdue = [one.next_due_at for one in waits if one.next_due_at and one.next_due_at < one.now - LATE]
    if overdue:
        what = "Delayed messages are due and not released"
        yield Attention(True, what, "no beat, worker or poller releases them", reverse("admin:delays"), min(overdue))
