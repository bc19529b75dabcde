"""Expiries: deliveries whose time is over without an ack come again after the retry delay, or become dead letters."""

from delivery import ordered, redeliveries
from scheduling.publish import publish
from store import database, groupcommit
from store.batch import Batch, Kind, Pending
from store.statements import Statement

FIND_EXPIRED = Statement(__file__, "find_expired")
LOCK_EXPIRED = Statement(__file__, "lock_expired")
TAKE_EXPIRED = Statement(__file__, "take_expired")

MAX_PER_BATCH = 1000


async def run(late_seconds: float = 0) -> bool:
    """Has the messages delivered again, or given up, whose time is over; tells whether there were any.

    With `late_seconds` it begins only when one has been over for that long: for whoever stands in for the beat.
    """
    if not await database.read(FIND_EXPIRED, {"late_seconds": late_seconds}):
        return False
    while await groupcommit.submit(EXPIRIES, None) >= MAX_PER_BATCH:
        pass
    return True


class Expiries(Kind[None]):
    """Expiries are written in a batch: the delete of a receipt is what sends its message on, once."""

    async def decide(self, batch: Batch, pending: list[Pending[None]]) -> None:
        taken = await batch.read(TAKE_EXPIRED, {"max_receipts": MAX_PER_BATCH})
        for row in taken:
            await publish(batch, await redeliveries.again(row))
        held = await batch.read(LOCK_EXPIRED, {"max_receipts": MAX_PER_BATCH})
        for row in held:
            await ordered.hold(batch, row)
        for one in pending:
            one.outcome = max(len(taken), len(held))


EXPIRIES = Expiries()
