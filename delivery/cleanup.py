"""Cleanup: deletes the rows of consumer groups that were deleted.

For seconds a process may still have such a group cached, and hand out messages to it. Each such receive also moves the
group in the ledger, and there the group is found.
"""

from delivery.rows import DeletedReceipt, GroupId
from store.db import connections
from store.db.statements import Statement
from store.reading import progress

FIND_GROUPS = Statement(__file__, "find_groups", GroupId)
DELETE_LEFT_RECEIPTS = Statement(__file__, "delete_left_receipts", DeletedReceipt)

MAX_RECEIPTS_AT_ONCE = 1000
MAX_STEPS = 100


async def run() -> set[int]:
    """Deletes the receipts, then the progress of deleted groups, within limits; returns the groups' ids."""
    # Read progress first: a group created after this read cannot be taken for a deleted one.
    readers = await progress.readers()
    existing = {row.id for row in await connections.read(FIND_GROUPS, {"ids": list(readers)})}
    deleted = readers - existing
    if deleted:
        await _delete(list(deleted))
    return deleted


async def _delete(group_ids: list[int]) -> None:
    for _ in range(MAX_STEPS):
        receipts = await connections.read(
            DELETE_LEFT_RECEIPTS, {"group_ids": group_ids, "max_receipts": MAX_RECEIPTS_AT_ONCE}
        )
        if not receipts and not await progress.forget(group_ids):
            return
