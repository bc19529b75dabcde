"""Figures of transactions: how many began, were decided and were asked about, in all that is kept and lately."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import Count

from store import blocking
from store.database import Row
from store.ids import first_id_of
from store.statements import Statement
from transactions.models import Endpoint

OPERATIONS_SINCE = Statement(__file__, "operations_since")
COUNT_OPERATIONS = Statement(__file__, "count_operations")
SAMPLE_OPERATIONS = Statement(__file__, "sample_operations")
COUNT_BEGUN = Statement(__file__, "count_begun")
COUNT_CHECKS = Statement(__file__, "count_checks")
EVER_SAID = Statement(__file__, "ever_said")
COUNT_WAITING = Statement(__file__, "count_waiting")

# Longer ranges are estimated: 100,000 operations take some 40 ms to count, an hour of a busy broker holds millions.
MAX_COUNTED_OPERATIONS = 100_000
# A share of one half is then off by 2 % in one case of twenty.
SAMPLES = 2000
MAX_COUNTED = 1_000_000
MAX_ROWS = 2000
LONG_AGO = datetime.min.replace(tzinfo=UTC)


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
    rows = blocking.read(OPERATIONS_SINCE, {"seconds": list(windows)})
    return Decisions(
        kept=_figures(LONG_AGO, rows[0].lowest, rows[0].next_id),
        within={row.seconds: _figures(row.since, row.since_id, row.next_id) for row in rows},
    )


def _figures(since: datetime, since_id: int, next_id: int) -> Figures:
    ended, estimated = _ended(since, since_id, next_id)
    begun = blocking.read(COUNT_BEGUN, {"since": since, "max_count": MAX_COUNTED})
    checks = blocking.read(COUNT_CHECKS, {"since_id": first_id_of(since), "max_count": MAX_COUNTED})
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
        return blocking.read(COUNT_OPERATIONS, asked)[0], False
    return blocking.read(SAMPLE_OPERATIONS, {**asked, "every": -(-(next_id - since_id) // SAMPLES)})[0], True


def ever_said() -> int:
    """How many ends, UNKNOWNs, discards and resumes were ever recorded, with the gaps that failed writes left."""
    return int(blocking.read(EVER_SAID)[0].operations)


def waiting() -> Sequence[Row]:
    """Per producer group and state: producer_group, state, halves and oldest_seconds; MAX_ROWS of these at most."""
    return blocking.read(COUNT_WAITING, {"max_rows": MAX_ROWS})


def endpoints() -> Sequence[tuple[str, str, int]]:
    """How many endpoints each producer group has, by their state."""
    rows = Endpoint.objects.order_by().values_list("group__name", "state").annotate(endpoints=Count("*"))
    return list(rows)
