"""The decisions of a namespace's producer groups within stretches of time, counted and never estimated."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from store.db import sync
from store.naming import namespaces
from transactions.stats import (
    COUNT_BEGUN,
    COUNT_OPERATIONS,
    LONG_AGO,
    MAX_COUNTED,
    MAX_COUNTED_OPERATIONS,
    OPERATIONS_SINCE,
)


class Decisions(NamedTuple):
    """Transactions begun, committed and rolled back in a period, and messages of discarded transactions."""

    halves: int
    commits: int
    rollbacks: int
    discarded: int


def decisions(namespace: str, windows: Sequence[int]) -> list[Decisions | None]:
    """The namespace's decisions in this cell: first all kept decisions, then the decisions of each period, given in
    seconds.

    None stands for a period with more than MAX_COUNTED_OPERATIONS operations of all producer groups together. A sample,
    as `stats.decisions` takes it, would be too small for a namespace with few decisions.
    """
    starts = namespaces.starts(namespace)
    ranges = sync.read(OPERATIONS_SINCE, {"seconds": list(windows)})
    kept = _decisions(starts, LONG_AGO, ranges[0].lowest, ranges[0].next_id)
    by_seconds = {row.seconds: _decisions(starts, row.since, row.since_id, row.next_id) for row in ranges}
    return [kept, *(by_seconds[seconds] for seconds in windows)]


def _decisions(starts: Sequence[str], since: datetime, since_id: int, next_id: int) -> Decisions | None:
    if next_id - since_id > MAX_COUNTED_OPERATIONS:
        return None
    of_range = {"starts": starts, "since": since, "since_id": since_id, "next_id": next_id}
    [ended] = sync.read(COUNT_OPERATIONS, of_range)
    [begun] = sync.read(COUNT_BEGUN, {"starts": starts, "since": since, "max_count": MAX_COUNTED})
    return Decisions(ended.begun + begun, ended.commits, ended.rollbacks, ended.discarded)
