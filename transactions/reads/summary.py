"""Sums of undecided transactions: how many each producer group has, and why checks brought no decision."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from store.cells import cells
from store.db import sync
from store.db.statements import Statement
from transactions.reads import health
from transactions.reads.health import Checking
from transactions.rows import PendingGroup, ReasonOfHalves

COUNT_PENDING = Statement(__file__, "count_pending", PendingGroup)
SUM_DISCARDED = Statement(__file__, "sum_discarded", ReasonOfHalves)
SUM_PENDING = Statement(__file__, "sum_pending", ReasonOfHalves)

MAX_GROUPS = 500
# How many half messages of a group, the first due ones, are summed by reason; fewer of each group if there are many
# groups. With 100,000 half messages in 200 groups the sum takes 54 ms with 100 per group and 148 ms with 500, on 2
# cores with a load of 7.
MAX_HALVES, LEAST_HALVES = 500, 20
MAX_SUMMED = 20_000
# The most discarded half messages whose reasons are summed: the latest of them.
MAX_DISCARDED = 10_000
MAX_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Pending:
    """The pending transactions of a producer group, counted up to a limit, and whether the group is checked."""

    group_id: int
    producer_group: str
    pending: int
    oldest_pending_at: datetime
    checking: Checking


def pending(max_count: int) -> list[Pending]:
    """The producer groups with pending transactions, the most first; each group is counted up to `max_count`."""
    found = cells.ask(lambda: sync.read(COUNT_PENDING, {"max_count": max_count, "max_groups": MAX_GROUPS}))
    rows = cells.together(found.values(), lambda row: row.group_id, _both, lambda row: row.pending)
    if not rows:
        return []
    checking = health.checking(row.producer_group for row in rows)
    never = Checking(paused=False, obstacle=None)
    return [
        Pending(
            group_id=row.group_id,
            producer_group=row.producer_group,
            pending=row.pending,
            oldest_pending_at=row.oldest_pending_at,
            checking=checking.get(row.producer_group, never),
        )
        for row in rows
    ]


def _both(one: PendingGroup, other: PendingGroup) -> PendingGroup:
    oldest = min(one.oldest_pending_at, other.oldest_pending_at)
    return one._replace(pending=one.pending + other.pending, oldest_pending_at=oldest)


def reasons(groups: int) -> dict[str, list[ReasonOfHalves]]:
    """The reasons why the transactions of each producer group are pending, the most frequent first.

    `groups` is the number of groups with pending transactions. Only transactions that are due first are summed, at most
    MAX_HALVES of a group. The reason is None for a half message without a failed check.
    """
    max_halves = max(LEAST_HALVES, min(MAX_HALVES, MAX_SUMMED // max(1, groups)))
    found: dict[str, list[ReasonOfHalves]] = defaultdict(list)
    for reason in _summed(SUM_PENDING, max_halves):
        found[reason.producer_group].append(reason)
    return dict(found)


def discarded() -> Sequence[ReasonOfHalves]:
    """The latest MAX_DISCARDED discarded transactions, summed by producer group and reason, the largest first."""
    return _summed(SUM_DISCARDED, MAX_DISCARDED)


def _summed(statement: Statement[ReasonOfHalves], max_halves: int) -> Sequence[ReasonOfHalves]:
    """The sums of the statement over all cells, by producer group and reason."""
    found = cells.ask(lambda: sync.read(statement, {"max_halves": max_halves, "max_rows": MAX_ROWS}))
    return cells.together(
        found.values(),
        lambda row: (row.producer_group, row.last_failure),
        lambda one, other: one._replace(halves=one.halves + other.halves),
        lambda row: row.halves,
    )
