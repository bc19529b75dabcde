"""Expiry: deliveries whose invisible time is over without an ack are retried, or become dead letters."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Self

from delivery.receipts import bundles
from delivery.receipts.bundles import MAX_BUNDLES, BundleKey
from delivery.retries import nonces, ordered, redelivery
from delivery.rows import FailedReceipt
from scheduling.publish import publish
from store.commit import writer
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.db import connections
from store.db.statements import Statement
from store.process import runtime


class ExpiryProbe(NamedTuple):
    """Whether the invisible time of any delivery is over, and the database's time of this answer."""

    now: datetime
    found: bool


FIND_EXPIRED = Statement(__file__, "find_expired", ExpiryProbe)
LOCK_EXPIRED_BUNDLES = Statement(__file__, "lock_expired_bundles", BundleKey)
LOCK_EXPIRED = Statement(__file__, "lock_expired", FailedReceipt)
TAKE_EXPIRED = Statement(__file__, "take_expired", FailedReceipt)

MAX_PER_BATCH = 1000
# A receipt is committed within this time after the start of its invisible time: PostgreSQL ends slower transactions.
WRITTEN_SECONDS = 60.0


class Horizon:
    """Lower bound of the expiry scan: no receipt that expired before `since` is left. None: scan from the start.

    While a session holds an old snapshot, acked receipts stay as dead rows, and a scan from the start takes 90 ms for
    200,000 dead rows.
    """

    def __init__(self) -> None:
        self.since: datetime | None = None
        self._scanned_at: datetime | None = None

    def note(self, now: datetime, found: bool, late_seconds: float) -> None:
        """Notes a scan at `now`. A scan that found nothing moves the bound to a time before the previous scan.

        The bound lags one scan behind in case the database stood still during a scan. A clock that was set back removes
        the bound.
        """
        before, self._scanned_at = self._scanned_at, now
        if before is None or now < before:
            self.since = None
        elif not found:
            self.since = before - timedelta(seconds=late_seconds + WRITTEN_SECONDS)


async def run(late_seconds: float = 0) -> bool:
    """Retries or gives up the messages whose invisible time is over; returns whether there were any. With
    `late_seconds`, runs only if some invisible time has been over for this long: the fallback leaves other messages to
    beat.
    """
    horizon = runtime.part(Horizon)
    [probe] = await connections.read(FIND_EXPIRED, {"late_seconds": late_seconds, "since": horizon.since})
    horizon.note(probe.now, probe.found, late_seconds)
    if not probe.found:
        return False
    while await writer.run(Expiry()) >= MAX_PER_BATCH:
        pass
    return True


class Expiry(Operation[int]):
    """Retries expired deliveries: deleting a receipt publishes its message, once. A batch runs its expiries as one.

    Deliveries of an expired bundle get receipts first. The result is MAX_PER_BATCH when more may have expired.
    """

    __slots__ = ()

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        since = runtime.part(Horizon).since
        keys = await batch.read(LOCK_EXPIRED_BUNDLES, {"since": since, "max_bundles": MAX_BUNDLES})
        await bundles.take_all_apart(batch, keys)
        parameters = {"since": since, "max_receipts": MAX_PER_BATCH}
        taken = await batch.read(TAKE_EXPIRED, parameters)
        for receipt in taken:
            await publish(batch, await redelivery.retry(receipt, nonces.delay_of(receipt.nonce)))
        locked = await batch.read(LOCK_EXPIRED, parameters)
        for receipt in locked:
            # No further delay: the queue has already waited for the whole invisible time.
            await ordered.hold(batch, receipt, 0)
        for one in operations:
            one.result = MAX_PER_BATCH if len(keys) == MAX_BUNDLES else max(len(taken), len(locked))
