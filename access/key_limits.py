"""Limits of an API key: messages and bytes a second, which each web process counts for itself.

A token bucket holds a second's worth. A request passes while the bucket is above zero, and takes its whole cost: one
that is larger than a second's worth passes, too, and those behind it wait until the debt is filled up.
"""

import asyncio
import math
import time
from dataclasses import dataclass

from access.rows import KeyRow
from store.db import connections
from store.db.statements import Statement
from store.errors import RateLimited
from store.process import runtime

ADD_REFUSALS = Statement(__file__, "add_refusals")

# Refusals are counted in the process, and added to the key's row this often at most.
KEEP_SECONDS = 5.0
# Buckets of keys that have not called for longest make room for others.
MAX_KEYS = 10_000


class Bucket:
    """What may pass now, in units that come in at `per_second`. Below zero: a debt."""

    __slots__ = ("_at", "_balance", "per_second")

    def __init__(self, per_second: int, at: float) -> None:
        self.per_second = per_second
        self._balance = float(per_second)
        self._at = at

    def wait_seconds(self, at: float) -> float:
        """How long the next request has to wait; 0: it may pass now."""
        filled = self._balance + max(at - self._at, 0.0) * self.per_second
        self._balance, self._at = min(filled, float(self.per_second)), at
        return 0.0 if self._balance > 0 else max(-self._balance / self.per_second, 1 / self.per_second)

    def take(self, units: int) -> None:
        """Takes the cost of a request."""
        self._balance -= units


@dataclass(slots=True)
class Allowance:
    """What one key may still send in this process."""

    key_id: int
    name: str
    messages: Bucket | None = None
    bytes: Bucket | None = None
    # Of the whole broker; transactions count them.
    max_undecided: int | None = None
    refused: int = 0

    def spend(self, messages: int, size: int, at: float) -> None:
        """Takes the cost of a request with so many messages and bytes, at a time of the monotonic clock.

        Raises RateLimited, and takes nothing, when one of the limits is used up.
        """
        for bucket, unit in ((self.messages, "messages"), (self.bytes, "bytes")):
            wait_seconds = bucket.wait_seconds(at) if bucket is not None else 0.0
            if bucket is not None and wait_seconds > 0:
                self.refused += 1
                raise self._refusal(bucket, unit, math.ceil(wait_seconds))
        for bucket, cost in ((self.messages, messages), (self.bytes, size)):
            if bucket is not None:
                bucket.take(cost)

    def _refusal(self, bucket: Bucket, unit: str, wait_seconds: int) -> RateLimited:
        return RateLimited(
            f"The key {self.name!r} may send {bucket.per_second} {unit} a second, its limit, and has sent them: try "
            f"again in {wait_seconds} s, or have its {unit}_per_second raised at /v1/api-keys.",
            retry_after_seconds=wait_seconds,
        )

    def adopt(self, row: KeyRow, at: float) -> None:
        """Takes over the limits of the key's row; a limit that did not change keeps its balance."""
        self.name = row.name
        self.messages = _adopted(self.messages, row.messages_per_second, at)
        self.bytes = _adopted(self.bytes, row.bytes_per_second, at)
        self.max_undecided = row.max_undecided


def _adopted(bucket: Bucket | None, per_second: int | None, at: float) -> Bucket | None:
    if per_second is None:
        return None
    return bucket if bucket is not None and bucket.per_second == per_second else Bucket(per_second, at)


class Allowances:
    """The allowances of the keys that have limits and have called this process."""

    def __init__(self) -> None:
        self._by_key: dict[int, Allowance] = {}
        self._kept_at = 0.0

    def of(self, row: KeyRow) -> Allowance | None:
        """The allowance of a key; None for one without limits."""
        if row.messages_per_second is None and row.bytes_per_second is None and row.max_undecided is None:
            return None
        found = self._by_key.pop(row.id, None) or Allowance(row.id, row.name)
        if len(self._by_key) >= MAX_KEYS:
            del self._by_key[next(iter(self._by_key))]
        self._by_key[row.id] = found
        found.adopt(row, time.monotonic())
        return found

    async def keep(self) -> None:
        """Adds the refusals since the last time to the rows of their keys, unless it did so less than KEEP_SECONDS ago.

        A crash may lose those of the last seconds.
        """
        now = asyncio.get_running_loop().time()
        refused = [one for one in self._by_key.values() if one.refused]
        if not refused or now - self._kept_at < KEEP_SECONDS:
            return
        self._kept_at = now
        counts = {one.key_id: one.refused for one in refused}
        for one in refused:
            one.refused = 0
        await connections.read_control(ADD_REFUSALS, {"id": list(counts), "refused": list(counts.values())})


def of(row: KeyRow) -> Allowance | None:
    """`Allowances.of` of this process."""
    return runtime.control(Allowances).of(row)


async def keep() -> None:
    """`Allowances.keep` of this process."""
    await runtime.control(Allowances).keep()
