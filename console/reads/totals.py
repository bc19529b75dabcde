"""The figures of the overview: what waits, what ended, what is stored."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count as SqlCount
from django.db.models import QuerySet
from django.db.models.functions import TruncMinute

from console.reads import producers
from console.reads.counts import Count, up_to
from store.models import CommitLog
from transactions.models import HalfMessage, Operation, ProducerGroup

# The latest operations that are looked at for the last hour: 100,000 took 31 ms, and 28 a second fill an hour.
OPERATIONS = 100_000
GROUPS = 200
MINUTES = 60


@dataclass(frozen=True)
class Halves:
    """Half messages without a decision."""

    pending: Count
    oldest_pending_at: datetime | None
    discarded: Count


@dataclass(frozen=True)
class Ends:
    """Decisions per minute of the last hour. `since` is later than an hour ago when there were too many to count."""

    since: datetime
    whole_hour: bool
    minutes: list[datetime]
    committed: list[int]
    rolled_back: list[int]


@dataclass(frozen=True)
class Log:
    """The commit log: how many messages it holds, and how many it ever took."""

    stored: int
    ever: int


def halves() -> Halves:
    """How many half messages wait or were discarded, and since when the oldest waits."""
    groups = producers.with_oldest(ProducerGroup.objects.order_by("id"))[:GROUPS]
    return Halves(
        pending=up_to(producers.pending()),
        oldest_pending_at=min(filter(None, map(producers.oldest_pending_at, groups)), default=None),
        discarded=up_to(HalfMessage.objects.filter(discarded_at__isnull=False)),
    )


def ends(now: datetime) -> Ends:
    """Commits and rollbacks per minute of the hour before `now`, as far as the latest operations reach back."""
    hour_ago = now - timedelta(minutes=MINUTES)
    latest = Operation.objects.order_by("-operation_id")
    beyond = latest.values_list("operation_id", "decided_at")[OPERATIONS : OPERATIONS + 1].first()
    operation_id, since = beyond or (-1, hour_ago)
    looked_at = Operation.objects.filter(operation_id__gt=operation_id, decided_at__gte=hour_ago)
    return per_minute(counted(looked_at), max(since, hour_ago), now, whole_hour=since <= hour_ago)


def counted(operations: QuerySet[Operation]) -> Counter[tuple[datetime, str]]:
    """How many of each decision there were in each minute."""
    decided = operations.filter(decision__in=("COMMIT", "ROLLBACK")).annotate(minute=TruncMinute("decided_at"))
    rows = decided.order_by().values_list("minute", "decision").annotate(rows=SqlCount("*"))
    return Counter({(minute, decision): number for minute, decision, number in rows})


def per_minute(found: Counter[tuple[datetime, str]], since: datetime, now: datetime, whole_hour: bool) -> Ends:
    """The counts as two rows of figures, one place for each of the hour's minutes."""
    this_minute = now.replace(second=0, microsecond=0)
    minutes = [this_minute - timedelta(minutes=ago) for ago in range(MINUTES, -1, -1)]
    return Ends(
        since=since,
        whole_hour=whole_hour,
        minutes=minutes,
        committed=[found[minute, "COMMIT"] for minute in minutes],
        rolled_back=[found[minute, "ROLLBACK"] for minute in minutes],
    )


def log() -> Log:
    """How many messages the commit log holds: its offsets run without a break but for writes that failed."""
    offsets = CommitLog.objects.values_list("log_offset", flat=True)
    last = offsets.order_by("-log_offset").first()
    first = offsets.order_by("log_offset").first()
    if last is None or first is None:
        return Log(0, 0)
    return Log(last - first + 1, last + 1)
