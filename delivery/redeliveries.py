"""Redeliveries: where a message goes that its consumer did not finish."""

from typing import Any

from django.conf import settings

from delivery import groups, retries
from scheduling.delays import Delay
from scheduling.publish import Publication
from store.database import Row


async def again(receipt: Row, delay_seconds: float | None = None) -> Publication:
    """The message of a receipt on its way to its group's retries, or to the dead letters when it had all of them.

    `delay_seconds` is the consumer's own wish, else the group's retry policy decides.
    """
    limit = settings.MAX_RECONSUME_TIMES if receipt.max_reconsume_times is None else receipt.max_reconsume_times
    delay = retries.delay(receipt.retry_policy, receipt.reconsume_times)
    if delay is None or receipt.reconsume_times >= limit:
        topic = await groups.dead_letter_topic(receipt.group_name)
        return _publication(receipt, topic.id, 0, receipt.reconsume_times, None)
    topic = await groups.retry_topic(receipt.group_name)
    queue_id = await groups.retry_queue_of(receipt.group_id, receipt.group_name, receipt.origin_topic_id)
    wait = delay if delay_seconds is None else Delay(seconds=delay_seconds)
    return _publication(receipt, topic.id, queue_id, receipt.reconsume_times + 1, wait)


def _publication(receipt: Any, topic_id: int, queue_id: int, reconsume_times: int, delay: Delay | None) -> Publication:
    return Publication(
        message_id=None,
        topic_id=topic_id,
        queue_id=queue_id,
        log_segment=receipt.log_segment,
        log_offset=receipt.log_offset,
        tags_code=receipt.tags_code,
        reconsume_times=reconsume_times,
        delay=delay,
    )
