"""What needs an operator's attention, the worst first: each a sentence that leads to where it is seen and repaired."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse

from console.pages import counts
from console.pages.counts import COUNT_LIMIT, GROUP_LIMIT
from delivery.dead_letters import lists as dead_letter_lists
from delivery.models import Subscription
from delivery.push import registry as subscription_registry
from delivery.stats import GroupStats
from monitoring.system import System
from scheduling.stats import Outermost
from transactions import health
from transactions.models import Endpoint
from transactions.reads.summary import Pending
from transactions.rows import AllUndecided

# Of one kind; the list that a line leads to has the others.
SHOWN = 5
# A release is late when its message was due for so long: pollers do it in 5 s.
LATE = timedelta(seconds=10)


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
    unasked = timedelta(seconds=settings.ATTENTION_UNASKED_SECONDS)
    old = [group for group in groups if group.oldest_pending_at < now - unasked]
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


def paused_groups(groups: list[GroupStats]) -> Iterator[Attention]:
    """Consumer groups that are paused while messages wait for them."""
    for group in [group for group in groups if group.group.paused and _waiting(group)][:SHOWN]:
        what = f"{group.group.name} is paused"
        detail = f"{_behind(group)}: resume it, or leave it to those who paused it"
        yield Attention(True, what, detail, _of_consumers(group), group.oldest_unacked_at)


def waiting_groups(groups: list[GroupStats], now: datetime) -> Iterator[Attention]:
    """Consumer groups whose oldest message waits for long, or that are far behind."""
    since = now - timedelta(seconds=settings.ATTENTION_UNACKED_SECONDS)
    running = [group for group in groups if not group.group.paused]
    for group in [group for group in running if _is_late(group, since) or group.lag > settings.ATTENTION_LAG][:SHOWN]:
        what = f"{group.group.name} is behind" if group.lag else f"{group.group.name} does not ack"
        # Whether consumers are there: where none is, nothing is handed out to be acked.
        moved = "" if group.moved_at is None else f"; last handed out {group.moved_at:%Y-%m-%d %H:%M:%S} UTC"
        detail = f"{_behind(group)}, {group.in_flight:,} in flight{moved}"
        yield Attention(True, what, detail, _of_consumers(group), group.oldest_unacked_at)


def surroundings(found: System) -> Iterator[Attention]:
    """What is out of order in the databases, the disk, Redis and the exports, and workers that are gone."""
    page = reverse("admin:system")
    for problem in found.of_servers:
        what, _, detail = problem.rstrip(".").partition(": ")
        yield Attention(True, what, detail, page)
    workers = [process for process in found.processes if process.kind == "worker"]
    # An installation that never had one needs none: web processes do its work.
    if workers and all(found.is_away(worker) for worker in workers):
        detail = f"{workers[0].process} was the last: start beat and a worker; web processes do the work late"
        yield Attention(True, "No tick of beat reaches a worker", detail, page, workers[0].beaten_at)


def _waiting(group: GroupStats) -> bool:
    return group.lag > 0 or group.oldest_unacked_at is not None


def _is_late(group: GroupStats, since: datetime) -> bool:
    return group.oldest_unacked_at is not None and group.oldest_unacked_at < since


def _behind(group: GroupStats) -> str:
    return f"{group.lag:,} message{'' if group.lag == 1 else 's'} not handed out"


def _of_consumers(group: GroupStats) -> str:
    return reverse("admin:consumer_group", args=(group.group.name,))
