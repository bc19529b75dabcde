"""The metrics and findings of outboxes, from the state that the draining processes write."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from django.db.models import Q

from console.monitoring.attention import SHOWN, Attention
from console.monitoring.scrape import ReadOnce, Sample, Shared
from store import stats as store_stats
from store.messages.texts import counted
from transactions.outboxes.models import Outbox
from transactions.outboxes.registry import MAX_OUTBOXES


def _of_each(number: Callable[[Outbox], float]) -> Callable[[ReadOnce], list[Sample]]:
    def read(_: ReadOnce) -> list[Sample]:
        return [((row.name,), number(row)) for row in Outbox.objects.order_by("name")[:MAX_OUTBOXES]]

    return read


# There is a finding if no process has looked at an outbox for this time; processes look every few seconds.
UNSEEN = timedelta(minutes=1)
# There is a finding if the oldest row has waited for this time.
STUCK = timedelta(minutes=2)
# An outbox is reported for this time after a row was set apart.
REFUSED = timedelta(hours=1)


def ailing(now: datetime) -> Iterator[Attention]:
    """Outboxes that fail, that are stuck, that set rows apart, and with an earlier table: at most SHOWN of each."""
    running = Outbox.objects.filter(paused=False)
    for row in running.filter(failure__isnull=False).order_by("failed_at")[:SHOWN]:
        mend = f"mend its source as it says, or PUT /v1/outboxes/{row.name} with another url"
        what, why = f"The outbox {row.name} is not drained", f"{row.place}: {row.failure}"
        yield Attention(True, what, why, "outboxes", mend, since=row.failed_at)
    well = running.filter(failure__isnull=True)
    for row in well.filter(_unseen(now)).order_by("name")[:SHOWN]:
        why = f"no process has looked into {row.place} for a minute"
        mend = "start a web process; if one runs, its log says what it waits for"
        yield Attention(True, f"The outbox {row.name} is not drained", why, "outboxes", mend, since=row.looked_at)
    for row in well.filter(oldest_at__lt=now - STUCK).exclude(_unseen(now)).order_by("oldest_at")[:SHOWN]:
        verb = "waits" if row.waiting == 1 else "wait"
        why = f"{counted(row.waiting, 'row')} {verb} in {row.place}, the first for more than two minutes"
        mend = "if the number falls, let it; else see the log of the web processes"
        yield Attention(True, f"The outbox {row.name} is behind", why, "outboxes", mend, since=row.oldest_at)
    for row in running.filter(refused_at__gt=now - REFUSED).order_by("-refused_at")[:SHOWN]:
        last = "" if row.refused_at is None else f", the last at {row.refused_at:%Y-%m-%d %H:%M:%S} UTC"
        why = f"{counted(row.refused, 'row')} so far{last}, that no message could be made of: each has its reason"
        mend = f"look into {row.schema}.mqbroker_outbox_refused of {row.place}; insert again what is mended"
        yield Attention(False, f"The outbox {row.name} sets rows apart", why, "outboxes", mend)
    for row in running.filter(outdated=True).order_by("name")[:SHOWN]:
        why = f"a row costs {row.place} more than with the table that docs/sql.md makes now"
        mend = "renew it by the statements of docs/sql.md, A table that an earlier version of this page made"
        yield Attention(False, f"The outbox {row.name} has the table of an earlier version", why, "outboxes", mend)


def _unseen(now: datetime) -> Q:
    return Q(looked_at__lt=now - UNSEEN) | Q(looked_at__isnull=True, created_at__lt=now - UNSEEN)


def _oldest_seconds(row: Outbox) -> float:
    return 0.0 if row.paused else _seconds_since(row.oldest_at)


def _looked_seconds(row: Outbox) -> float:
    return 0.0 if row.paused else _seconds_since(row.looked_at or row.created_at)


def _seconds_since(moment: datetime | None) -> float:
    return 0.0 if moment is None else max(0.0, (store_stats.now() - moment).total_seconds())


METRICS = (
    Shared(
        "mqbroker_outbox_rows_waiting",
        "Rows that waited in an outbox at the latest look, counted to 100,000.",
        _of_each(lambda row: row.waiting),
        labels=("outbox",),
    ),
    Shared(
        "mqbroker_outbox_oldest_seconds",
        "How long the oldest waiting row of an outbox has waited; 0 without waiting rows, and for a paused outbox.",
        _of_each(_oldest_seconds),
        labels=("outbox",),
    ),
    Shared(
        "mqbroker_outbox_looked_seconds",
        "Time since a process of the broker last looked into an outbox; 0 for a paused outbox.",
        _of_each(_looked_seconds),
        labels=("outbox",),
    ),
    Shared(
        "mqbroker_outbox_rows_drained_total",
        "Rows of an outbox whose messages were stored.",
        _of_each(lambda row: row.drained),
        labels=("outbox",),
        counter=True,
    ),
    Shared(
        "mqbroker_outbox_rows_refused_total",
        "Rows of an outbox that could not become messages.",
        _of_each(lambda row: row.refused),
        labels=("outbox",),
        counter=True,
    ),
    Shared(
        "mqbroker_outbox_fails",
        "1 while an outbox cannot be drained, else 0; 0 also for a paused outbox.",
        _of_each(lambda row: row.failure is not None and not row.paused),
        labels=("outbox",),
    ),
)
FINDINGS = (ailing,)
