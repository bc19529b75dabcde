"""Reappend: the messages of receipts are stored again before their segment is dropped; a retry needs their bodies."""

from collections.abc import Sequence
from typing import NamedTuple, Self

from delivery.receipts import bundles
from delivery.receipts.bundles import MAX_BUNDLES, BundleKey
from store.commit import reappend, writer
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.db.statements import Statement
from store.segments import retention


class ReceiptOfLog(NamedTuple):
    """A receipt whose message lies in the segment that is dropped next."""

    group_id: int
    topic_id: int
    queue_id: int
    queue_offset: int
    log_segment: int
    log_offset: int


LOCK_OLD_BUNDLES = Statement(__file__, "lock_old_bundles", BundleKey)
LOCK_OLD_RECEIPTS = Statement(__file__, "lock_old_receipts", ReceiptOfLog)
MOVE_RECEIPTS = Statement(__file__, "move_receipts")

MAX_PER_BATCH = 500


async def run() -> int:
    """Appends the messages of receipts in the segment dropped next.

    Returns the number of messages; the segment is kept until the number is 0.
    """
    leaving_id = await retention.leaving()
    if leaving_id is None:
        return 0
    moved = 0
    while found := await writer.run(ReceiptReappend(leaving_id)):
        moved += found
    return moved


class ReceiptReappend(Operation[int]):
    """Appends messages again and points their receipts at the new offsets, in one transaction."""

    __slots__ = ("leaving_id",)

    def __init__(self, leaving_id: int) -> None:
        super().__init__()
        self.leaving_id = leaving_id

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        for one in operations:
            one.result = await _reappend(batch, one.leaving_id)


async def _reappend(batch: Batch, leaving_id: int) -> int:
    keys = await batch.read(LOCK_OLD_BUNDLES, {"leaving_id": leaving_id, "max_bundles": MAX_BUNDLES})
    await bundles.take_all_apart(batch, keys)
    receipts = await batch.read(LOCK_OLD_RECEIPTS, {"leaving_id": leaving_id, "max_receipts": MAX_PER_BATCH})
    if not receipts:
        return 0
    new_offsets = await reappend.append_again(batch, {(row.log_segment, row.log_offset) for row in receipts})
    moved = [row for row in receipts if (row.log_segment, row.log_offset) in new_offsets]
    parameters = {
        "segment_id": batch.segment_id,
        "group_id": [row.group_id for row in moved],
        "topic_id": [row.topic_id for row in moved],
        "queue_id": [row.queue_id for row in moved],
        "queue_offset": [row.queue_offset for row in moved],
        "log_offset": [new_offsets[row.log_segment, row.log_offset] for row in moved],
    }
    await batch.read(MOVE_RECEIPTS, parameters)
    return len(moved)
