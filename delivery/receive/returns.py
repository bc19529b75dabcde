"""Returns: deliveries that no consumer has begun are offered again, and no retry is counted."""

from collections.abc import Sequence, Set
from typing import Self

from delivery import groups
from delivery.receipts.elsewhere import settled
from delivery.receipts.failing import TAKE_RECEIPTS, receipts_of
from delivery.receipts.given import settle
from delivery.receipts.handles import Handle
from delivery.retries import redelivery
from delivery.rows import SettledHandle
from scheduling.publish import publish
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.db.statements import Statement
from store.errors import Refusal

RETURN_RECEIPTS = Statement(__file__, "return_receipts", SettledHandle)


async def give_back(group_name: str, given: list[str], delay_seconds: float = 0) -> list[Refusal | None]:
    """Returns deliveries that no consumer has begun: after `delay_seconds` they are offered again; no retry counts.

    Messages of an ordered group stay in their queue. Returns, in the order given, None, or ReceiptExpired for a handle
    that proves no delivery any more: its message is offered again, or was acked. Raises GroupNotExist or
    MessageIllegal.
    """
    group = await groups.existing(group_name)
    return await settle(group, given, lambda handles: Return(handles, delay_seconds))


class Return(Operation[Set[Handle]]):
    """A return deletes the receipts and publishes their messages again, with the retries they had.

    The messages may be received after `delay_seconds`. A return to an ordered group holds the messages in their queue.
    """

    __slots__ = ("delay_seconds", "handles")
    URGENT = True

    def __init__(self, handles: Set[Handle], delay_seconds: float) -> None:
        super().__init__()
        self.handles = handles
        self.delay_seconds = delay_seconds

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        held = await groups.hold(batch, {handle.group_id for one in operations for handle in one.handles})
        for one in operations:
            in_order = {each for each in one.handles if each.group_id in held and held[each.group_id].ordered}
            parameters: dict[str, object] = {"delay_seconds": one.delay_seconds}
            done = await settled(batch, RETURN_RECEIPTS, in_order, parameters)
            taken = await receipts_of(batch, TAKE_RECEIPTS, one.handles - in_order)
            for row in taken.values():
                await publish(batch, await redelivery.unchanged(row, one.delay_seconds))
            one.result = done | taken.keys()
