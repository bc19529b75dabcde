"""Returns: deliveries that reached nobody come again as they were, and no retry is counted."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from delivery import groups
from delivery.receipts import TAKE_RECEIPTS, Handle, unpack
from scheduling.delays import Delay
from scheduling.publish import Publication, publish
from store import notifier
from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.db.connections import Row
from store.db.statements import Statement

RETURN_RECEIPTS = Statement(__file__, "return_receipts")


@dataclass(frozen=True, slots=True)
class Returned:
    """Handles of one group, and when their messages may be received again."""

    handles: list[Handle]
    delay_seconds: float


async def give_back(group_name: str, given: list[str], delay_seconds: float) -> None:
    """Gives deliveries back that nobody has seen: after `delay_seconds` they are handed out as if they never were.

    Those of an ordered group keep their place. A handle that proves nothing any more is left alone: its message is on
    its way again, or done. Raises GroupNotExist.
    """
    group = await groups.existing(group_name)
    handles = sorted(held for one in given if (held := unpack(one)) is not None)
    kind = PLACE_RETURNS if group.ordered else RETURNS
    await writer.submit(kind, Returned(handles, delay_seconds), urgent=True)
    if group.ordered:
        # Their queues are free for the next batch.
        notifier.notify(Counter(held.topic_id for held in handles))


class Returns(Kind[Returned]):
    """A return takes the receipts and publishes their messages again, with the retries they had."""

    async def decide(self, batch: Batch, pending: list[Pending[Returned]]) -> None:
        for one in pending:
            rows = await batch.read(TAKE_RECEIPTS, _columns(one.request.handles))
            for row in rows:
                await publish(batch, await _again(row, one.request.delay_seconds))
            one.outcome = len(rows)


class PlaceReturns(Kind[Returned]):
    """A return to an ordered group holds the messages in their place."""

    async def decide(self, batch: Batch, pending: list[Pending[Returned]]) -> None:
        for one in pending:
            wish = {"delay_seconds": one.request.delay_seconds, **_columns(one.request.handles)}
            await batch.read(RETURN_RECEIPTS, wish)
            one.outcome = len(one.request.handles)


RETURNS = Returns()
PLACE_RETURNS = PlaceReturns()


def _columns(handles: list[Handle]) -> dict[str, Any]:
    return {name: [getattr(held, name) for held in handles] for name in Handle._fields}


async def _again(receipt: Row, delay_seconds: float) -> Publication:
    topic = await groups.retry_topic(receipt.group_name)
    return Publication(
        message_id=None,
        topic_id=topic.id,
        queue_id=await groups.retry_queue_of(receipt.group_id, receipt.group_name, receipt.origin_topic_id),
        log_segment=receipt.log_segment,
        log_offset=receipt.log_offset,
        tags_code=receipt.tags_code,
        reconsume_times=receipt.reconsume_times,
        delay=Delay(seconds=delay_seconds),
    )
