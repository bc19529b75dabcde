"""Returns: deliveries that reached no consumer are offered again as they were, and no retry is counted."""

from collections import Counter
from dataclasses import dataclass

from delivery import groups, receipts
from delivery.receipts import TAKE_RECEIPTS, Handle
from delivery.retries import redelivery
from scheduling.publish import publish
from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.db.statements import Statement
from store.notices import notifier

RETURN_RECEIPTS = Statement(__file__, "return_receipts")


@dataclass(frozen=True, slots=True)
class Return:
    """Handles of one group, and after how many seconds their messages may be received again."""

    group_id: int
    handles: list[Handle]
    delay_seconds: float


async def give_back(group_name: str, given: list[str], delay_seconds: float) -> None:
    """Returns deliveries that no consumer has seen: after `delay_seconds` they are offered as if they never were.

    Messages of an ordered group stay in their queue. A handle that proves no delivery any more is ignored: its message
    is on its way again, or done. Raises GroupNotExist.
    """
    group = await groups.existing(group_name)
    handles = sorted(handle for one in given if (handle := receipts.unpack(one)) is not None)
    await writer.submit(RETURNS, Return(group.id, handles, delay_seconds), urgent=True)
    if group.ordered:
        # The queues have no delivery in flight any more.
        notifier.notify(Counter(handle.topic_id for handle in handles))


class Returns(Kind[Return]):
    """A return deletes the receipts and publishes their messages again, with the retries they had.

    A return to an ordered group holds the messages in their queue.
    """

    async def decide(self, batch: Batch, pending: list[Pending[Return]]) -> None:
        held = await groups.hold(batch, {one.request.group_id for one in pending})
        for one in pending:
            group = held.get(one.request.group_id)
            columns = receipts.columns(one.request.handles)
            if group is not None and group.ordered:
                await batch.read(RETURN_RECEIPTS, {"delay_seconds": one.request.delay_seconds, **columns})
            else:
                for row in await batch.read(TAKE_RECEIPTS, columns):
                    await publish(batch, await redelivery.unchanged(row, one.request.delay_seconds))
            one.outcome = True


RETURNS = Returns()
