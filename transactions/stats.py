"""Numbers of transactions: begun, decided, checked and undecided, in all and in the last minutes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from store import stats as store_stats
from store.cells import cells
from store.db import databases, sync
from store.db.statements import Statement
from store.messages.ids import first_id_of
from store.naming import namespaces
from transactions.models import Endpoint, HalfMessage
from transactions.rows import (
    AllUndecided,
    HalfMessagesOfTopic,
    OperationCounts,
    OperationsSince,
    OutcomeCount,
    PendingOfGroup,
    WaitingHalves,
)

CHECK_OUTCOMES = Statement(__file__, "check_outcomes", OutcomeCount)
COUNT_BEGUN = Statement(__file__, "count_begun", one=int)
COUNT_CHECKS = Statement(__file__, "count_checks", one=int)
COUNT_OPERATIONS = Statement(__file__, "count_operations", OperationCounts)
COUNT_HALF_MESSAGES = Statement(__file__, "count_half_messages", HalfMessagesOfTopic)
COUNT_WAITING = Statement(__file__, "count_waiting", WaitingHalves)
HALF_TO_END = Statement(__file__, "half_to_end", maybe=list[float])
OPERATIONS_SINCE = Statement(__file__, "operations_since", OperationsSince)
SAMPLE_OPERATIONS = Statement(__file__, "sample_operations", OperationCounts)

# The highest count: counting a million rows takes 0.1 s and more. A number at this limit means "at least".
MAX_COUNTED = 1_000_000
# Numbers for ranges of more operations are estimated: counting 100,000 takes some 40 ms, and an hour of a busy broker
# has millions.
MAX_COUNTED_OPERATIONS = 100_000
# The size of the sample: with it, the estimate of a share of one half is wrong by more than 2 % in one case of twenty.
SAMPLES = 2000
# The most checks of the last hour that are counted by outcome.
MAX_COUNTED_CHECKS = 100_000
# The most decisions for the quantiles of the undecided time.
MAX_TIMED_OPERATIONS = 10_000
# The most pairs of a producer group and a state.
MAX_ROWS = 2000

OUTCOMES = ("decided", "unknown", "unanswered", "handed_out", "unreached")
QUANTILES = ("0.5", "0.99")
LONG_AGO = datetime.min.replace(tzinfo=UTC)

PENDING_OF_GROUPS = Statement(__file__, "pending_of_groups", PendingOfGroup)
SUM_UNDECIDED = Statement(__file__, "sum_undecided", AllUndecided)


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of transactions in a stretch of time. `halves`: transactions that were begun in this time, decided or
    not.

    `estimated`: there were too many operations to count, and a sample was read. Undecided half messages and checks are
    counted up to MAX_COUNTED.
    """

    halves: int
    commits: int
    rollbacks: int
    checks: int
    estimated: bool


@dataclass(frozen=True, slots=True)
class Decisions:
    """The counts of all operations that are kept, and of each window by its seconds."""

    kept: Counts
    within: dict[int, Counts]


def decisions(windows: Sequence[int]) -> Decisions:
    """The counts of transactions within each window, given in seconds until now."""
    ranges = sync.read(OPERATIONS_SINCE, {"seconds": list(windows)})
    return Decisions(
        kept=_counts(LONG_AGO, ranges[0].lowest, ranges[0].next_id),
        within={row.seconds: _counts(row.since, row.since_id, row.next_id) for row in ranges},
    )


def _counts(since: datetime, since_id: int, next_id: int) -> Counts:
    ended, estimated = _ended(since, since_id, next_id)
    [begun] = sync.read(COUNT_BEGUN, {"since": since, "max_count": MAX_COUNTED, "starts": namespaces.starts(None)})
    [asked] = sync.read(COUNT_CHECKS, {"since_id": first_id_of(since), "max_count": MAX_COUNTED})
    return Counts(
        halves=ended.begun + begun,
        commits=ended.commits,
        rollbacks=ended.rollbacks,
        checks=asked,
        estimated=estimated,
    )


def _ended(since: datetime, since_id: int, next_id: int) -> tuple[OperationCounts, bool]:
    parameters = {"since": since, "since_id": since_id, "next_id": next_id}
    operations = next_id - since_id
    if operations <= MAX_COUNTED_OPERATIONS:
        return sync.read(COUNT_OPERATIONS, {**parameters, "starts": None})[0], False
    return sync.read(SAMPLE_OPERATIONS, {**parameters, "every": -(-operations // SAMPLES)})[0], True


def operations_ever() -> int:
    """The number of operations ever recorded, including the gaps of failed writes."""
    return store_stats.ever_taken("operation_id")


def checks(seconds: int = 3600) -> dict[str, int]:
    """The latest MAX_COUNTED_CHECKS checks of the last `seconds` by outcome. `unreached`: no producer was reached."""
    since = timezone.now() - timedelta(seconds=seconds)
    asked = {"since_id": first_id_of(since), "max_count": MAX_COUNTED_CHECKS}
    counts = dict.fromkeys(OUTCOMES, 0)
    for rows in cells.ask(lambda: sync.read(CHECK_OUTCOMES, asked)).values():
        for row in rows:
            counts[row.outcome] = counts.get(row.outcome, 0) + row.checks
    return counts


def seconds_undecided() -> dict[str, float]:
    """Quantiles of the seconds from half message to end, over the last hour's latest decisions, if there are any."""
    [seconds] = sync.read(HALF_TO_END, {"max_count": MAX_TIMED_OPERATIONS})
    return {} if seconds is None else dict(zip(QUANTILES, seconds, strict=True))


def endpoints() -> Sequence[tuple[str, str, int]]:
    """The number of endpoints of each producer group by state, in this cell. States differ between cells."""
    rows = Endpoint.objects.using(databases.here()).order_by().values_list("group__name", "state")
    return list(rows.annotate(endpoints=Count("*")))


def waiting(namespace: str | None = None) -> Sequence[WaitingHalves]:
    """The undecided transactions per producer group and state, at most MAX_ROWS pairs.

    With `namespace`, only its producer groups.
    """
    return sync.read(COUNT_WAITING, {"max_rows": MAX_ROWS, "starts": namespaces.starts(namespace)})


def by_topic(namespace: str | None = None) -> Sequence[HalfMessagesOfTopic]:
    """The half messages of undecided transactions per topic and state, at most MAX_ROWS pairs.

    With `namespace`, only its topics.
    """
    return sync.read(COUNT_HALF_MESSAGES, {"max_rows": MAX_ROWS, "starts": namespaces.starts(namespace)})


def of_group(group_id: int) -> PendingOfGroup:
    """The number of pending transactions of a producer group, without discarded ones, which wait for an operator."""
    return pending_of([group_id], MAX_COUNTED)[group_id]


def pending_of(group_ids: Sequence[int], max_count: int) -> dict[int, PendingOfGroup]:
    """The pending transactions of each of these producer groups, counted up to `max_count` in each."""
    asked = {"group_ids": list(group_ids), "max_count": max_count}
    found = cells.ask(lambda: sync.read(PENDING_OF_GROUPS, asked))
    return {row.group_id: row for row in cells.together(found.values(), _group_of, _both, _pending_of)}


def _group_of(row: PendingOfGroup) -> int:
    return row.group_id


def _pending_of(row: PendingOfGroup) -> int:
    return row.pending


def _both(one: PendingOfGroup, other: PendingOfGroup) -> PendingOfGroup:
    begun = [row.oldest_pending_at for row in (one, other) if row.oldest_pending_at is not None]
    return PendingOfGroup(one.group_id, one.pending + other.pending, min(begun, default=None))


def undecided(max_count: int, namespace: str | None = None) -> AllUndecided:
    """The number of undecided transactions per state, up to `max_count` in each. With `namespace`, only its groups."""
    asked = {"max_count": max_count, "starts": namespaces.starts(namespace)}
    found = cells.ask(lambda: sync.read(SUM_UNDECIDED, asked)[0]).values()
    oldest = min((row.oldest_pending_at for row in found if row.oldest_pending_at), default=None)
    return AllUndecided(sum(row.pending for row in found), oldest, sum(row.discarded for row in found))


def undecided_of_group(group_id: int) -> int:
    """The number of undecided transactions of a group, pending or discarded, counted up to MAX_COUNTED."""
    return _count(HalfMessage.objects.filter(producer_group_id=group_id))


def undecided_of_topic(topic_id: int) -> int:
    """The number of undecided transactions with messages of a topic, counted up to MAX_COUNTED."""
    return _count(HalfMessage.objects.filter(Q(topic_id=topic_id) | Q(topic_ids__contains=[topic_id])))


def _count(rows: QuerySet[HalfMessage]) -> int:
    return rows.order_by()[:MAX_COUNTED].count()
