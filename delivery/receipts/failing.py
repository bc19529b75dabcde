"""Deliveries that failed: a nack offers their messages again later, a give-up makes them dead letters at once."""

from collections.abc import Sequence, Set
from typing import Self

from django.conf import settings

from delivery import groups
from delivery.receipts import bundles
from delivery.receipts.elsewhere import LOCK_HANDLES
from delivery.receipts.given import settle
from delivery.receipts.handles import Handle, columns
from delivery.retries import nacks, ordered, redelivery
from delivery.rows import FailedReceipt
from scheduling.publish import publish
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.db.statements import Statement
from store.errors import Refusal, require_between

LOCK_RECEIPTS = Statement(__file__, "lock_receipts", FailedReceipt)
TAKE_RECEIPTS = Statement(__file__, "take_receipts", FailedReceipt)


async def nack(
    group_name: str, given: list[str], delay_seconds: float | None, reason: str | None = None
) -> list[Refusal | None]:
    """Nacks deliveries: each message is delivered again after the group's retry delay, or after `delay_seconds`.

    The reason, of at most nacks.MAX_REASON characters, is kept for the message's trace and its dead letter. Returns, in
    the order given, None or ReceiptExpired. Raises GroupNotExist or MessageIllegal.
    """
    if delay_seconds is not None:
        require_between("delay_seconds", delay_seconds, 0, settings.MAX_TIMER_DELAY_SECONDS)
    kept_reason = nacks.validate(reason)
    group = await groups.existing(group_name)
    return await settle(group, given, lambda handles: Nack(handles, delay_seconds, kept_reason))


async def give_up(group_name: str, given: list[str], reason: str | None = None) -> list[Refusal | None]:
    """Gives deliveries up: their messages become dead letters of the group at once, without further retries.

    In an ordered group the next message of the key follows. The reason is kept as by `nack`. Returns, in the order
    given, None or ReceiptExpired. Raises GroupNotExist or MessageIllegal.
    """
    kept_reason = nacks.validate(reason)
    group = await groups.existing(group_name)
    return await settle(group, given, lambda handles: GiveUp(handles, kept_reason))


async def receipts_of(
    batch: Batch, statement: Statement[FailedReceipt], handles: Set[Handle]
) -> dict[Handle, FailedReceipt]:
    """The receipts that a statement deletes or locks, by their handles."""
    if not handles:
        return {}
    await bundles.take_apart(batch, handles)
    wanted = columns(handles)
    await batch.read(LOCK_HANDLES, wanted)
    return {_handle_of(row): row for row in await batch.read(statement, wanted)}


def _handle_of(row: FailedReceipt) -> Handle:
    return Handle(row.group_id, row.topic_id, row.queue_id, row.queue_offset, row.nonce)


class Nack(Operation[Set[Handle]]):
    """Nacks deliveries of one group: one delete takes the receipts, and their messages are published again.

    Messages of an ordered group are held in their queues until their retry, or become dead letters.
    """

    __slots__ = ("delay_seconds", "handles", "reason")
    URGENT = True

    def __init__(self, handles: Set[Handle], delay_seconds: float | None, reason: str | None) -> None:
        super().__init__()
        self.handles = handles
        self.delay_seconds = delay_seconds
        self.reason = reason

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        given = {handle: one for one in operations for handle in one.handles}
        held = await groups.hold(batch, {handle.group_id for handle in given})
        in_order = {handle for handle in given if handle.group_id in held and held[handle.group_id].ordered}
        taken = await receipts_of(batch, TAKE_RECEIPTS, given.keys() - in_order)
        locked = await receipts_of(batch, LOCK_RECEIPTS, in_order)
        for handle, receipt in (taken | locked).items():
            nacks.keep(batch, receipt, given[handle].reason)
            await given[handle].fail(batch, receipt, is_ordered=handle in locked)
        for one in operations:
            one.result = (taken.keys() | locked.keys()) & one.handles

    async def fail(self, batch: Batch, receipt: FailedReceipt, *, is_ordered: bool) -> None:
        """Publishes a message for a retry, or in an ordered group holds it; after the last retry: a dead letter."""
        if is_ordered:
            await ordered.hold(batch, receipt, self.delay_seconds)
        else:
            await publish(batch, await redelivery.retry(receipt, self.delay_seconds))


class GiveUp(Nack):
    """Gives up deliveries of one group: their messages are not retried."""

    __slots__ = ()

    def __init__(self, handles: Set[Handle], reason: str | None) -> None:
        super().__init__(handles, None, reason)

    async def fail(self, batch: Batch, receipt: FailedReceipt, *, is_ordered: bool) -> None:
        """Makes the message a dead letter."""
        if is_ordered:
            await ordered.give_up(batch, receipt)
        else:
            await publish(batch, await redelivery.dead_letter(receipt))
