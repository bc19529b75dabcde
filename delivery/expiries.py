"""Expiries: deliveries whose time is over without an ack come again after the retry delay, or become dead letters."""

from typing import Any

from django.conf import settings

from delivery import groups
from scheduling.delays import Delay
from scheduling.publish import Publication, publish
from store import database, groupcommit
from store.database import Row
from store.groupcommit import Batch, Kind, Pending
from store.statements import Statement

FIND_EXPIRED = Statement(__file__, "find_expired")
TAKE_EXPIRED = Statement(__file__, "take_expired")

MAX_PER_BATCH = 1000
# RocketMQ: the first retry waits for level 3, which is 10 s, the next for level 4, and so on: level 3 + retries before.
FIRST_RETRY_LEVEL = 3


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
            await publish(batch, await again(row))
        for one in pending:
            one.outcome = len(rows)


EXPIRIES = Expiries()


async def again(receipt: Row, delay_seconds: float | None = None) -> Publication:
    """Where a message goes that its consumer did not finish: its group's retries, or the dead letters."""
    limit = settings.MAX_RECONSUME_TIMES if receipt.max_reconsume_times is None else receipt.max_reconsume_times
    retries = receipt.reconsume_times + 1
    where: dict[str, Any] = {
        "message_id": None,
        "log_segment": receipt.log_segment,
        "log_offset": receipt.log_offset,
        "tags_code": receipt.tags_code,
    }
    if retries > limit:
        topic = await groups.dead_letter_topic(receipt.group_name)
        return Publication(topic_id=topic.id, queue_id=0, reconsume_times=receipt.reconsume_times, **where)
    topic = await groups.retry_topic(receipt.group_name)
    queue_id = await groups.retry_queue_of(receipt.group_id, receipt.group_name, receipt.origin_topic_id)
    delay = (
        Delay(level=FIRST_RETRY_LEVEL + receipt.reconsume_times)
        if delay_seconds is None
        else Delay(seconds=delay_seconds)
    )
    return Publication(topic_id=topic.id, queue_id=queue_id, reconsume_times=retries, delay=delay, **where)
