"""Returns: deliveries that reached no consumer are offered again as they were, and no retry is counted."""

from collections import Counter
from collections.abc import Sequence
from typing import Self

from delivery import groups
from delivery.receipts import handles
from delivery.receipts.failing import TAKE_RECEIPTS
from delivery.receipts.handles import Handle
from delivery.retries import redelivery
from scheduling.publish import publish
from store.commit import writer
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.db.statements import Statement
from store.notices import notifier
from store.process import runtime

RETURN_RECEIPTS = Statement(__file__, "return_receipts")


async def give_back(group_name: str, given: list[str], delay_seconds: float) -> None:
    """Returns deliveries that no consumer has seen: after `delay_seconds` they are offered as if they never were.

    Messages of an ordered group stay in their queue. A handle that proves no delivery any more is ignored: its message
    is on its way again, or done. Raises GroupNotExist.
    """
    group = await groups.existing(group_name)
    for cell, of_cell in handles.by_cell(given).items():
        returned = sorted(handle for one in of_cell if (handle := handles.unpack(one)) is not None)
        with runtime.in_cell(cell):
            await writer.run(Return(group.id, returned, delay_seconds))
            if group.ordered:
                # The queues have no delivery in flight any more.
                notifier.notify(Counter(handle.topic_id for handle in returned))


class Return(Operation[bool]):
    """A return deletes the receipts and publishes their messages again, with the retries they had.

    They may be received again after `delay_seconds`. A return to an ordered group holds the messages in their queue.
    """

    __slots__ = ("delay_seconds", "group_id", "handles")
    URGENT = True

    def __init__(self, group_id: int, handles: list[Handle], delay_seconds: float) -> None:
        super().__init__()
        self.group_id = group_id
        self.handles = handles
        self.delay_seconds = delay_seconds

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        held = await groups.hold(batch, {one.group_id for one in operations})
        for one in operations:
            group = held.get(one.group_id)
            columns = handles.columns(one.handles)
            if group is not None and group.ordered:
                await batch.read(RETURN_RECEIPTS, {"delay_seconds": one.delay_seconds, **columns})
            else:
                for row in await batch.read(TAKE_RECEIPTS, columns):
                    await publish(batch, await redelivery.unchanged(row, one.delay_seconds))
            one.result = True
