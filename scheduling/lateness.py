"""Lateness: how long after its due time a delayed message became visible, kept in buckets every few seconds."""

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from scheduling.rows import LatenessRow
from store import runtime
from store.db import connections, sync
from store.db.arrays import literal
from store.db.statements import Statement
from store.db.uuid7 import new_id

INSERT_LATENESS = Statement(__file__, "insert_lateness")
SUM_LATENESS = Statement(__file__, "sum_lateness", LatenessRow)

# Upper bounds in milliseconds; the last bucket holds whatever was later.
BUCKETS_MS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 500, 1000, 3000, 10_000, 60_000)
KEEP_SECONDS = 10.0
# Timers have no queue of the schedule topic.
TIMERS = -1


class Counts:
    """What this process has released since it last kept its counts. Figures only: a crash may lose the last ones."""

    def __init__(self) -> None:
        self._by_queue: dict[int, list[int]] = {}
        self._kept_at = 0.0

    def note(self, queue_id: int, late_ms: Iterable[float]) -> None:
        """Counts releases of a level's queue, or of TIMERS, by how late each was."""
        counts = self._by_queue.setdefault(queue_id, [0] * (len(BUCKETS_MS) + 1))
        for late in late_ms:
            counts[bisect_left(BUCKETS_MS, late)] += 1

    async def keep(self) -> None:
        """Writes the counts down, when they have gathered for long enough."""
        now = asyncio.get_running_loop().time()
        if not self._by_queue or now - self._kept_at < KEEP_SECONDS:
            return
        self._kept_at = now
        gathered, self._by_queue = self._by_queue, {}
        rows = {
            "id": [new_id() for _ in gathered],
            "queue_id": list(gathered),
            "counts": [literal(counts) for counts in gathered.values()],
        }
        await connections.read(INSERT_LATENESS, rows)


def note(queue_id: int, late_ms: Iterable[float]) -> None:
    """Counts releases of this process; as `Counts.note`."""
    runtime.part(Counts).note(queue_id, late_ms)


async def keep() -> None:
    """Writes this process's counts down; as `Counts.keep`."""
    await runtime.part(Counts).keep()


def of_last_hour() -> dict[int, dict[str, float | int | None]]:
    """Per queue of the schedule topic, and for TIMERS: released, p50_ms and p99_ms of the last hour."""
    return {row.queue_id: summary(row.counts) for row in sync.read(SUM_LATENESS)}


def summary(bucket_counts: Sequence[int]) -> dict[str, float | int | None]:
    """The number and percentiles of counted releases."""
    return {
        "released": sum(bucket_counts),
        "p50_ms": percentile(bucket_counts, 0.50),
        "p99_ms": percentile(bucket_counts, 0.99),
    }


def percentile(bucket_counts: Sequence[int], share: float) -> float | None:
    """The lateness in ms that this share of the releases did not exceed, interpolated in its bucket; None of none."""
    wanted = share * sum(bucket_counts)
    if not wanted:
        return None
    below = 0
    for place, count in enumerate(bucket_counts):
        if below + count >= wanted and count:
            low = BUCKETS_MS[place - 1] if place else 0
            high = BUCKETS_MS[min(place, len(BUCKETS_MS) - 1)]
            return round(low + (high - low) * (wanted - below) / count, 3)
        below += count
    return float(BUCKETS_MS[-1])
