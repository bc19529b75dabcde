"""Lateness: the time between due and visible of each release, counted in buckets and written every 10 s."""

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scheduling import delays
from scheduling.rows import LatenessRow
from store.cells import cells
from store.db import connections, sync
from store.db.arrays import literal
from store.db.statements import Statement
from store.messages.ids import new_id
from store.process import runtime

INSERT_LATENESS = Statement(__file__, "insert_lateness")
SUM_LATENESS = Statement(__file__, "sum_lateness", LatenessRow)

# Upper bounds of the buckets, in milliseconds. A last bucket, without a bound, counts all later releases.
BUCKETS_MS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 500, 1000, 3000, 10_000, 60_000)
KEEP_SECONDS = 10.0
HOUR = 3600
# The value for timers in the column of the level's queue.
TIMERS = -1


class Counts:
    """The releases that this process has counted and not written yet. A crash may lose them."""

    def __init__(self) -> None:
        self._by_queue: dict[int, list[int]] = {}
        self._kept_at = 0.0

    def note(self, queue_id: int, late_ms: Iterable[float]) -> None:
        """Counts releases of a level's queue, or of TIMERS, by how late each was."""
        counts = self._by_queue.setdefault(queue_id, [0] * (len(BUCKETS_MS) + 1))
        for late in late_ms:
            counts[bisect_left(BUCKETS_MS, late)] += 1

    async def keep(self) -> None:
        """Writes the counts, unless they were written less than KEEP_SECONDS ago."""
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
    """Counts releases in this process: see `Counts.note`."""
    runtime.part(Counts).note(queue_id, late_ms)


async def keep() -> None:
    """Writes the counts of this process: see `Counts.keep`."""
    await runtime.part(Counts).keep()


@dataclass(frozen=True, slots=True)
class Summary:
    """The number of releases, and percentiles of their lateness; None without a release."""

    released: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None


def of_last_hour() -> dict[int | None, Summary]:
    """The lateness of the last hour by delay level, for levels with releases; the key None stands for timers."""
    found = _counts(HOUR)
    return {None if queue == TIMERS else delays.level_of(queue): summary(of) for queue, of in found.items()}


def of_all(seconds: int) -> Summary:
    """The lateness of all releases of the last `seconds`."""
    return summary([sum(of_queues) for of_queues in zip(*_counts(seconds).values(), strict=True)])


def _counts(seconds: int) -> dict[int, list[int]]:
    """The releases of the last `seconds` per queue, and bucket of lateness."""
    counts: dict[int, list[int]] = {}
    for rows in cells.ask(lambda: sync.read(SUM_LATENESS, {"seconds": seconds})).values():
        for queue_id, of_queue in rows:
            before = counts.get(queue_id)
            counts[queue_id] = (
                of_queue if before is None else [one + other for one, other in zip(before, of_queue, strict=True)]
            )
    return counts


def summary(bucket_counts: Sequence[int]) -> Summary:
    """The number and the percentiles of releases that were counted in buckets."""
    return Summary(sum(bucket_counts), percentile(bucket_counts, 0.50), percentile(bucket_counts, 0.99))


def percentile(bucket_counts: Sequence[int], share: float) -> float | None:
    """The quantile `share` of the lateness in ms, interpolated within its bucket."""
    wanted = share * sum(bucket_counts)
    if not wanted:
        return None
    below = 0
    for bucket, count in enumerate(bucket_counts):
        if below + count >= wanted and count:
            low = BUCKETS_MS[bucket - 1] if bucket else 0
            high = BUCKETS_MS[min(bucket, len(BUCKETS_MS) - 1)]
            return round(low + (high - low) * (wanted - below) / count, 3)
        below += count
    return float(BUCKETS_MS[-1])
