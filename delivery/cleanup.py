"""Departures: what is left of consumer groups that were taken away is deleted.

A process may not know for seconds that a group is gone, and hand out messages to it meanwhile. Each such receive moves
the group in the ledger, too, and there it is found.
"""

from delivery.rows import GroupId, LeftReceipt
from store import progress
from store.db import connections
from store.db.statements import Statement

FIND_GROUPS = Statement(__file__, "find_groups", GroupId)
DELETE_LEFT_RECEIPTS = Statement(__file__, "delete_left_receipts", LeftReceipt)

MAX_RECEIPTS_AT_ONCE = 1000
MAX_STEPS = 100


async def run() -> set[int]:
    """Deletes the deliveries, then the progress of groups that are gone, within limits; gives their ids."""
    readers = await progress.readers()
    # In this order: who is in the ledger was made before it was read.
    known = {row.id for row in await connections.read(FIND_GROUPS, {"ids": list(readers)})}
    gone = readers - known
    if gone:
        await _delete(list(gone))
    return gone


async def _delete(group_ids: list[int]) -> None:
    for _ in range(MAX_STEPS):
        receipts = await connections.read(
            DELETE_LEFT_RECEIPTS, {"group_ids": group_ids, "max_receipts": MAX_RECEIPTS_AT_ONCE}
        )
        if not receipts and not await progress.forget(group_ids):
            return
