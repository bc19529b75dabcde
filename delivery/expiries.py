"""Expiries: deliveries whose time is over without an ack come again after the retry delay, or become dead letters."""

from delivery import redeliveries
from scheduling.publish import publish
from store import database, groupcommit
from store.groupcommit import Batch, Kind, Pending
from store.statements import Statement

FIND_EXPIRED = Statement(__file__, "find_expired")
TAKE_EXPIRED = Statement(__file__, "take_expired")

MAX_PER_BATCH = 1000


async def run(late_seconds: float = 0) -> int:
    """Takes the receipts whose time is over, and has each message delivered again or given up; gives their number.

    With `late_seconds` it begins only when one has been over for that long: for whoever stands in for the beat.
    """
    if not await database.read(FIND_EXPIRED, {"late_seconds": late_seconds}):
        return 0
    taken = 0
    while True:
        found: int = await groupcommit.submit(EXPIRIES, None)
        taken += found
        if found < MAX_PER_BATCH:
            return taken


class Expiries(Kind[None]):
    """Expiries are written in a batch: the delete of a receipt is what sends its message on, once."""

    async def decide(self, batch: Batch, pending: list[Pending[None]]) -> None:
        rows = await batch.read(TAKE_EXPIRED, {"max_receipts": MAX_PER_BATCH})
        for row in rows:
            await publish(batch, await redeliveries.again(row))
        for one in pending:
            one.outcome = len(rows)


EXPIRIES = Expiries()
