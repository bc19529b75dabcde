"""Claims of half messages whose check is due: other processes pass over a claimed half message until the claim ends.

A claim is a separate transaction, so that no row is locked during a call. The claim is short and is renewed during the
calls: if the worker dies, its checks are late by CLAIM_SECONDS, not lost.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime

from store.db import connections
from store.db.statements import Statement
from store.errors import Refusal
from transactions.rows import ClaimedHalf, GroupWithDueHalves

RENEW_CLAIMS = Statement(__file__, "renew_claims", one=datetime)
CLAIM_HALVES = Statement(__file__, "claim_halves", ClaimedHalf)
GROUPS_WITH_DUE_HALVES = Statement(__file__, "groups_with_due_halves", GroupWithDueHalves)
SECONDS_TO_NEXT_CHECK = Statement(__file__, "seconds_to_next_check", maybe=float)

# If a worker dies, the checks that it claimed are late by this time, plus the time until a tick or a poll finds them:
# 15 s at most. Two renewals may fail before other processes ask too.
CLAIM_SECONDS = 9.0
RENEWAL_SECONDS = 3.0
# The most half messages of a claim.
MAX_CLAIM = 1000
# The most bytes of bodies and properties in a claim; the first half message is always claimed.
MAX_CLAIM_BYTES = 8 * 1024 * 1024


async def due_groups(
    late_seconds: float, max_groups: int, asking: Collection[int], after_id: int
) -> Sequence[GroupWithDueHalves]:
    """The groups with a half message that is late by `late_seconds`, after the group `after_id`, in a circle.

    Groups in `asking` are left out.
    """
    asked = {"late_seconds": late_seconds, "max_groups": max_groups, "asking": list(asking), "after_id": after_id}
    return await connections.read(GROUPS_WITH_DUE_HALVES, asked)


async def seconds_to_next(group_id: int) -> float | None:
    """Seconds until a group's next check is due, negative if it is late; None without a pending half message."""
    [seconds] = await connections.read(SECONDS_TO_NEXT_CHECK, {"group_id": group_id})
    return seconds


@contextlib.asynccontextmanager
async def claimed(group_id: int, max_halves: int) -> AsyncIterator[Sequence[ClaimedHalf]]:
    """Claims at most `max_halves` due half messages of a group, and renews the claim within the block."""
    claim = {"group_id": group_id, "claim_seconds": CLAIM_SECONDS, "max_halves": max_halves}
    halves = await connections.read(CLAIM_HALVES, {**claim, "max_bytes": MAX_CLAIM_BYTES, "topic_ids": None})
    if not halves:
        yield halves
        return
    renewals = asyncio.create_task(_renew(halves), name=f"renew a claim of group {group_id}")
    try:
        yield halves
    finally:
        renewals.cancel()


async def _renew(halves: Sequence[ClaimedHalf]) -> None:
    """Renews a claim until this task is cancelled, or all its half messages have an outcome."""
    ids, until = [half.transaction_id for half in halves], halves[0].claimed_until
    while True:
        await asyncio.sleep(RENEWAL_SECONDS)
        claim = {"transaction_ids": ids, "claimed_until": until, "claim_seconds": CLAIM_SECONDS}
        try:
            renewed = await connections.read(RENEW_CLAIMS, claim)
        except Refusal:
            continue
        if not renewed:
            return
        until = renewed[0]
