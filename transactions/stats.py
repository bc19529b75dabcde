"""Numbers of transactions: begun, decided, checked and undecided, in all and within the last hour."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Count, QuerySet
from django.utils import timezone

from store.db import sync
from store.db.connections import Row
from store.db.statements import Statement
from store.db.uuid7 import first_id_of
from store.errors import MessageIllegal
from store.models import Topic
from transactions.models import Endpoint, HalfMessage, ProducerGroup
from transactions.rows import (
    BegunCount,
    CheckCount,
    OperationCounts,
    OperationsSince,
    OperationTotal,
    OutcomeCount,
    SecondsUndecided,
    WaitingHalves,
)

CHECK_OUTCOMES = Statement(__file__, "check_outcomes", OutcomeCount)
COUNT_BEGUN = Statement(__file__, "count_begun", BegunCount)
COUNT_CHECKS = Statement(__file__, "count_checks", CheckCount)
COUNT_OPERATIONS = Statement(__file__, "count_operations", OperationCounts)
COUNT_WAITING = Statement(__file__, "count_waiting", WaitingHalves)
EVER_SAID = Statement(__file__, "ever_said", OperationTotal)
HALF_TO_END = Statement(__file__, "half_to_end", SecondsUndecided)
OPERATIONS_SINCE = Statement(__file__, "operations_since", OperationsSince)
SAMPLE_OPERATIONS = Statement(__file__, "sample_operations", OperationCounts)

# Longer ranges are estimated: 100,000 operations take some 40 ms to count, an hour of a busy broker holds millions.
MAX_COUNTED_OPERATIONS = 100_000
# A share of one half is then off by 2 % in one case of twenty.
SAMPLES = 2000
MAX_COUNTED_ROWS = 1_000_000
MAX_ROWS = 2000
LONG_AGO = datetime.min.replace(tzinfo=UTC)

OUTCOMES = ("decided", "unknown", "unanswered", "handed_out", "unreached")
QUANTILES = ("0.5", "0.99")
MAX_COUNTED_CHECKS = 100_000
MAX_LOOKED_AT = 10_000

# An exact count of a million rows takes 0.1 s and more; beyond it the number only says "very many".
MAX_COUNTED_HALVES = 1_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    """What became of transactions in a stretch of time. `halves` are those begun in it, decided by now or not.

    `estimated` when there were too many operations to count and a sample of them was looked at instead. `halves` and
    `checks` are counted to MAX_COUNTED beyond that.
    """

    halves: int
    commits: int
    rollbacks: int
    checks: int
    estimated: bool


@dataclass(frozen=True, slots=True)
class Decisions:
    """The figures of all that is kept, and of each window of so many seconds."""

    kept: Figures
    within: dict[int, Figures]


def decisions(windows: Sequence[int]) -> Decisions:
    """What became of transactions within each window."""
    rows = sync.read(OPERATIONS_SINCE, {"seconds": list(windows)})
    return Decisions(
        kept=_figures(LONG_AGO, rows[0].lowest, rows[0].next_id),
        within={row.seconds: _figures(row.since, row.since_id, row.next_id) for row in rows},
    )


def _figures(since: datetime, since_id: int, next_id: int) -> Figures:
    ended, estimated = _ended(since, since_id, next_id)
    begun = sync.read(COUNT_BEGUN, {"since": since, "max_count": MAX_COUNTED_ROWS})
    checks = sync.read(COUNT_CHECKS, {"since_id": first_id_of(since), "max_count": MAX_COUNTED_ROWS})
    return Figures(
        halves=ended.begun + begun[0].begun,
        commits=ended.commits,
        rollbacks=ended.rollbacks,
        checks=checks[0].checks,
        estimated=estimated,
    )


def _ended(since: datetime, since_id: int, next_id: int) -> tuple[Row, bool]:
    asked = {"since": since, "since_id": since_id, "next_id": next_id}
    if next_id - since_id <= MAX_COUNTED_OPERATIONS:
        return sync.read(COUNT_OPERATIONS, asked)[0], False
    return sync.read(SAMPLE_OPERATIONS, {**asked, "every": -(-(next_id - since_id) // SAMPLES)})[0], True


def ever_said() -> int:
    """How many ends, UNKNOWNs, discards and resumes were ever recorded, with the gaps that failed writes left."""
    return int(sync.read(EVER_SAID)[0].operations)


def waiting() -> Sequence[Row]:
    """Per producer group and state: producer_group, state, halves and oldest_seconds; MAX_ROWS of these at most."""
    return sync.read(COUNT_WAITING, {"max_rows": MAX_ROWS})


def endpoints() -> Sequence[tuple[str, str, int]]:
    """How many endpoints each producer group has, by their state."""
    rows = Endpoint.objects.order_by().values_list("group__name", "state").annotate(endpoints=Count("*"))
    return list(rows)


def checks() -> dict[str, int]:
    """Checks of the last hour, the latest MAX_COUNTED, by outcome. An unreached one asked nobody and does not count."""
    since = timezone.now() - timedelta(hours=1)
    rows = sync.read(CHECK_OUTCOMES, {"since_id": first_id_of(since), "max_count": MAX_COUNTED_CHECKS})
    return dict.fromkeys(OUTCOMES, 0) | {row.outcome: row.checks for row in rows}


def seconds_undecided() -> dict[str, float]:
    """Quantiles of the seconds from half to end, of the last hour's latest decisions; none when there were none."""
    [row] = sync.read(HALF_TO_END, {"max_count": MAX_LOOKED_AT})
    return dict(zip(QUANTILES, map(float, row.seconds), strict=True)) if row.seconds is not None else {}


@dataclass(frozen=True, slots=True)
class Undecided:
    """The transactions of a group that wait for their decision, counted to MAX_COUNTED, and the age of the oldest."""

    pending: int
    oldest_pending_at: datetime | None


def of_group(group_id: int) -> Undecided:
    """What waits in a producer group; discarded transactions wait for an operator and are not in it."""
    waiting = HalfMessage.objects.filter(producer_group_id=group_id, discarded_at__isnull=True)
    oldest = waiting.order_by("stored_at").values_list("stored_at", flat=True).first()
    return Undecided(_count(waiting), oldest)


def judge_group(group: ProducerGroup) -> None:
    """Raises MessageIllegal while the group has transactions without a decision, discarded ones among them."""
    left = _count(HalfMessage.objects.filter(producer_group_id=group.id))
    if left:
        raise MessageIllegal(
            f"The producer group {group.name} has {left} undecided transactions: "
            "end them, or resolve the discarded ones, before it is deleted."
        )


def judge_topic(topic: Topic) -> None:
    """Raises MessageIllegal while transactions without a decision hold messages of the topic.

    Reads the half messages from end to end: no index leads from a topic to them, and none is worth its price.
    """
    left = _count(HalfMessage.objects.filter(topic_ids__contains=[topic.id]))
    if left:
        raise MessageIllegal(
            f"The topic {topic.name} has messages of {left} undecided transactions: "
            "end them, or resolve the discarded ones, before it is deleted."
        )


def _count(rows: QuerySet[HalfMessage]) -> int:
    return rows.order_by()[:MAX_COUNTED_HALVES].count()
