"""Findings that need an operator's attention: each has a sentence, a page that shows it, and its remedy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from console.monitoring import around, consumers, counts, system
from console.monitoring.counts import COUNT_LIMIT, GROUP_LIMIT
from console.monitoring.system import System
from delivery import stats as delivery_stats
from delivery.dead_letters import lists as dead_letter_lists
from delivery.models import Subscription
from delivery.push import health as subscription_health
from delivery.stats import GroupStats
from scheduling import stats as scheduling_stats
from scheduling.stats import Outermost
from store import stats as store_stats
from store.messages.texts import counted
from store.process import doors
from transactions import stats as transaction_stats
from transactions.models import Endpoint
from transactions.reads import health, summary
from transactions.reads.summary import Pending
from transactions.rows import AllUndecided

# The most findings of one kind that are shown; the page that a finding links to has the others.
SHOWN = 5
# A release is late when its message has been due for this time. Without beat and workers, pollers release within 5 s.
LATE = timedelta(seconds=10)
MEND_SERVER = "mend the server at its URL, then enable it in the console"


@dataclass(frozen=True)
class Attention:
    """One finding. `urgent`: the problem does not pass by itself. `since` is when the problem began, for failures the
    first after the last success; None if no row has the time.

    `about` is the name of the console's page that shows the finding, `name` the group or subscription, if any.
    `mend` is a command, or an instruction.
    """

    urgent: bool
    what: str
    detail: str
    about: str
    mend: str
    name: str = ""
    since: datetime | None = None


@dataclass(frozen=True)
class Facts:
    """The data in which findings are searched: of the whole broker, or limited to a namespace's names."""

    now: datetime
    undecided: AllUndecided
    pending: Sequence[Pending]
    waits: Sequence[Outermost]
    groups: Sequence[GroupStats]
    system: System
    namespace: str | None = None


def read() -> Facts:
    """Reads the data from the databases now."""
    return Facts(
        now=store_stats.now(),
        undecided=transaction_stats.undecided(COUNT_LIMIT + 1),
        pending=summary.pending(GROUP_LIMIT + 1),
        waits=waits(),
        groups=delivery_stats.by_urgency(),
        system=system.read(),
    )


def waits() -> list[Outermost]:
    """The times of the oldest and of the next message of each delay level and of the timers."""
    return [*scheduling_stats.level_ends().values(), scheduling_stats.timer_ends()]


def found(facts: Facts) -> list[Attention]:
    """All findings, the urgent ones first."""
    needs = [
        *discarded(facts.undecided),
        *dead_letters(facts.namespace),
        *checks(facts.pending, facts.now),
        *ailing_endpoints(facts.namespace),
        *ailing_subscriptions(facts.namespace),
        *paused_groups(facts.groups),
        *waiting_groups(facts.groups, facts.now),
        *(Attention(True, *one) for one in consumers.failing(facts.groups, facts.now, SHOWN)),
        *(Attention(False, *one) for one in system.closed_topics(SHOWN, facts.namespace)),
        *(of_the_broker(facts) if facts.namespace is None else ()),
    ]
    return sorted(needs, key=lambda one: not one.urgent)


def of_the_broker(facts: Facts) -> Iterator[Attention]:
    """The findings about the whole broker that belong to no namespace."""
    for ailing in doors.added(doors.To.FINDINGS):
        yield from ailing(facts.now)
    yield from late_releases(facts.waits)
    yield from (Attention(**one._asdict()) for one in around.found(facts.system))


def discarded(found: AllUndecided) -> Iterator[Attention]:
    """Findings about discarded transactions, which only an operator can decide."""
    if found.discarded:
        count = counts.up_to(COUNT_LIMIT, found.discarded)
        what = f"{count} discarded transaction{'' if found.discarded == 1 else 's'}"
        why = "the checks brought no decision: resume or decide them"
        yield Attention(True, what, why, "discarded", "mqb discarded, then mqb resume or mqb resolve")


def dead_letters(namespace: str | None) -> Iterator[Attention]:
    """Findings about dead letters of consumer groups."""
    for group in dead_letter_lists.groups(namespace)[:SHOWN]:
        name = group.group_name
        what = f"{counted(group.letters, 'dead letter')} of {name}"
        why = f"given up after all retries, the last at {group.last_dead_at:%Y-%m-%d %H:%M:%S} UTC: redrive them"
        yield Attention(True, what, why, "dead_letters_of", f"mqb redrive {name}", name)


def checks(groups: Sequence[Pending], now: datetime) -> Iterator[Attention]:
    """Findings about producer groups with old pending transactions: the broker cannot check these transactions, and no
    producer ends them.
    """
    unasked = timedelta(seconds=settings.ATTENTION_UNASKED_SECONDS)
    old = [group for group in groups if group.oldest_pending_at < now - unasked]
    for group in [group for group in old if group.checking.obstacle or group.checking.paused][:SHOWN]:
        name = group.producer_group
        what = f"{counts.up_to(GROUP_LIMIT, group.pending)} pending of {name} cannot be asked about"
        why = group.checking.obstacle or "its checks are paused"
        mend = "register an endpoint, or start a producer that polls"
        if group.checking.paused:
            mend = f"mqb resume-group {name} --checks"
        yield Attention(True, what, why, "pending", mend, name, group.oldest_pending_at)


def ailing_endpoints(namespace: str | None) -> Iterator[Attention]:
    """Findings about endpoints that are not called, or whose answers decide nothing."""
    for endpoint in health.ailing(SHOWN, namespace):
        name = endpoint.group.name
        if endpoint.state == "healthy":
            what = f"An endpoint of {name} answers, and decides nothing"
            why = f"{counted(endpoint.void_answers, 'void answer')} in a row; the last: {endpoint.last_answer}"
            mend = "compare its answer with docs/check-back.md"
            yield Attention(True, what, why, "producer_group", mend, name, endpoint.void_since)
        else:
            what, why = f"An endpoint of {name} is {condition(endpoint)}", failure(endpoint)
            is_disabled = endpoint.state == "disabled"
            yield Attention(is_disabled, what, why, "producer_group", MEND_SERVER, name, endpoint.failing_since)


def ailing_subscriptions(namespace: str | None) -> Iterator[Attention]:
    """Findings about subscriptions whose servers are not called."""
    for subscription in subscription_health.ailing(SHOWN, namespace):
        what = f"The subscription {subscription.name} is {condition(subscription)}"
        is_disabled = subscription.state == "disabled"
        name, why, since = subscription.name, failure(subscription), subscription.failing_since
        yield Attention(is_disabled, what, why, "subscription", MEND_SERVER, name, since)


def condition(called: Endpoint | Subscription) -> str:
    """The reason why a server is not called, in words."""
    return "disabled" if called.state == "disabled" else f"paused after {counts.failures(called.failures)}"


def failure(called: Endpoint | Subscription) -> str:
    """The URL and the last failure of the calls, as text."""
    return f"{called.url}: {called.last_failure or 'no reason kept'}"


def late_releases(waits: Sequence[Outermost]) -> Iterator[Attention]:
    """Findings about delayed messages that are due and not released, because beat, workers and pollers are all away."""
    overdue = [one.next_due_at for one in waits if one.next_due_at and one.next_due_at < one.now - LATE]
    if overdue:
        what = "Delayed messages are due and not released"
        why = "no beat, worker or poller releases them"
        yield Attention(True, what, why, "delays", "start beat and a worker, or a web process", since=min(overdue))


def paused_groups(groups: Sequence[GroupStats]) -> Iterator[Attention]:
    """Findings about consumer groups that are paused while messages wait for them."""
    waiting = [group for group in groups if group.lag > 0 or group.oldest_unacked_at is not None]
    for group in [group for group in waiting if group.group.paused][:SHOWN]:
        name = group.group.name
        why = f"{_behind(group)}: resume it, or leave it to those who paused it"
        mend, since = f"mqb resume-group {name}", group.oldest_unacked_at
        yield Attention(True, f"{name} is paused", why, "consumer_group", mend, name, since)


def waiting_groups(groups: Sequence[GroupStats], now: datetime) -> Iterator[Attention]:
    """Findings about consumer groups whose oldest message has waited for long, or whose lag is large."""
    since = now - timedelta(seconds=settings.ATTENTION_UNACKED_SECONDS)
    running = [group for group in groups if not group.group.paused]
    for group in [group for group in running if _is_late(group, since) or group.lag > settings.ATTENTION_LAG][:SHOWN]:
        name = group.group.name
        what = f"{name} is behind" if group.lag else f"{name} does not ack"
        # The time of the last hand-out shows whether the group has consumers.
        moved = "" if group.moved_at is None else f"; last handed out {group.moved_at:%Y-%m-%d %H:%M:%S} UTC"
        why = f"{_behind(group)}, {group.in_flight:,} in flight{moved}"
        mend = "start more consumers, or see what theirs wait for"
        yield Attention(True, what, why, "consumer_group", mend, name, group.oldest_unacked_at)


def _waiting(group: GroupStats) -> bool:
    return group.lag > 0 or group.oldest_unacked_at is not None


def _is_late(group: GroupStats, since: datetime) -> bool:
    return group.oldest_unacked_at is not None and group.oldest_unacked_at < since


def _behind(group: GroupStats) -> str:
    return f"{counted(group.lag, 'message')} not handed out"
