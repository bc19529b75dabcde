"""Expiries: deliveries whose time is over without an ack come again after the retry delay, or become dead letters."""

from datetime import datetime, timedelta

from delivery import ordered, redelivery
from delivery.rows import ExpiredFound, ExpiredReceipt, LockedReceipt
from scheduling.publish import publish
from store import runtime
from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.db import connections
from store.db.statements import Statement

FIND_EXPIRED = Statement(__file__, "find_expired", ExpiredFound)
LOCK_EXPIRED = Statement(__file__, "lock_expired", LockedReceipt)
TAKE_EXPIRED = Statement(__file__, "take_expired", ExpiredReceipt)

MAX_PER_BATCH = 1000
# A delivery is written within this time of when its invisible time counts from: time-outs end what is slower.
WRITTEN_SECONDS = 60.0


class Horizon:
    """Up to when this process knows that no delivery is left whose time is over; None: it has to look at everything."""

    def __init__(self) -> None:
        self.since: datetime | None = None
        self._looked_at: datetime | None = None

    def look(self, now: datetime, found: bool, late_seconds: float) -> None:
        """Moves on after a look that found nothing, to before the look before it, in case the database stood still.

        A clock that was set back proves nothing of before.
        """
        before, self._looked_at = self._looked_at, now
        if before is None or now < before:
            self.since = None
        elif not found:
            self.since = before - timedelta(seconds=late_seconds + WRITTEN_SECONDS)


async def run(late_seconds: float = 0) -> bool:
    """Has the messages delivered again, or given up, whose time is over; tells whether there were any.

    With `late_seconds` it begins only when one has been over for that long: for whoever stands in for the beat.
    """
    horizon = runtime.part(Horizon)
    [looked] = await connections.read(FIND_EXPIRED, {"late_seconds": late_seconds, "since": horizon.since})
    horizon.look(looked.now, looked.found, late_seconds)
    if not looked.found:
        return False
    while await writer.submit(EXPIRIES, None) >= MAX_PER_BATCH:
        pass
    return True


class Expiries(Kind[None]):
    """Expiries are written in a batch: the delete of a receipt is what sends its message on, once."""

    async def decide(self, batch: Batch, pending: list[Pending[None]]) -> None:
        asked = {"since": runtime.part(Horizon).since, "max_receipts": MAX_PER_BATCH}
        taken = await batch.read(TAKE_EXPIRED, asked)
        for row in taken:
            await publish(batch, await redelivery.again(row))
        held = await batch.read(LOCK_EXPIRED, asked)
        for receipt in held:
            await ordered.hold(batch, receipt)
        for one in pending:
            one.outcome = max(len(taken), len(held))


EXPIRIES = Expiries()
