"""Renewals: the messages of deliveries in flight are appended again before their segment goes; a nack needs them."""

from delivery.rows import OldReceipt
from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.db.statements import Statement
from store.segments import reappend, retention

LOCK_OLD_RECEIPTS = Statement(__file__, "lock_old_receipts", OldReceipt)
MOVE_RECEIPTS = Statement(__file__, "move_receipts")

MAX_PER_BATCH = 500
KEY = ("group_id", "topic_id", "queue_id", "queue_offset")


async def run() -> int:
    """Moves the receipts off the log that goes next; gives their number. Nothing goes while one of them is left."""
    leaving_id = await retention.leaving()
    if leaving_id is None:
        return 0
    moved = 0
    while found := await writer.submit(RECEIPT_RENEWALS, leaving_id):
        moved += found
    return moved


class ReceiptRenewals(Kind[int]):
    """A renewal appends messages again and moves their receipts, in one transaction."""

    async def decide(self, batch: Batch, pending: list[Pending[int]]) -> None:
        for one in pending:
            one.outcome = await self._renew(batch, one.request)

    async def _renew(self, batch: Batch, leaving_id: int) -> int:
        receipts = await batch.read(LOCK_OLD_RECEIPTS, {"leaving_id": leaving_id, "max_receipts": MAX_PER_BATCH})
        if not receipts:
            return 0
        offsets = await reappend.append_again(batch, {(row.log_segment, row.log_offset) for row in receipts})
        moved = [row for row in receipts if (row.log_segment, row.log_offset) in offsets]
        columns: dict[str, object] = {name: [getattr(row, name) for row in moved] for name in KEY}
        places = [offsets[row.log_segment, row.log_offset] for row in moved]
        await batch.read(MOVE_RECEIPTS, {"segment_id": batch.segment_id, "log_offset": places, **columns})
        return len(moved)


RECEIPT_RENEWALS = ReceiptRenewals()
