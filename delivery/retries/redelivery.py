"""Redelivery: the publication of a message after its delivery failed or was returned."""

from django.conf import settings

from delivery import groups
from delivery.retries import policies
from delivery.rows import FailedReceipt
from scheduling import delays
from scheduling.delays import Delay
from scheduling.publish import Publication
from store.naming.topics import TopicFacts


class Failed:
    """A failed delivery. `delay` is the wait before the retry; None if the message has had all its retries."""

    def __init__(self, receipt: FailedReceipt) -> None:
        limit = settings.MAX_RECONSUME_TIMES if receipt.max_reconsume_times is None else receipt.max_reconsume_times
        self.delay: Delay | None = None
        if receipt.reconsume_times < limit:
            self.delay = policies.delay(receipt.retry_policy, receipt.reconsume_times)

    @property
    def delay_seconds(self) -> float:
        """The wait in seconds. If the retry policy names a delay level, the level is converted to seconds."""
        if self.delay is None:
            return 0.0
        if self.delay.level is None:
            return self.delay.seconds or 0.0
        return float(delays.seconds_of_level(self.delay.level))


async def retry(receipt: FailedReceipt, delay_seconds: float | None = None) -> Publication:
    """The publication of a failed message to its group's retry topic, or to the dead letters after the last retry.

    `delay_seconds`: the delay that the consumer asked for; None: by the group's retry policy.
    """
    failed = Failed(receipt)
    if failed.delay is None:
        return await dead_letter(receipt)
    wait = failed.delay if delay_seconds is None else Delay(seconds=delay_seconds)
    return await _to_retries(receipt, receipt.reconsume_times + 1, wait)


async def unchanged(receipt: FailedReceipt, delay_seconds: float) -> Publication:
    """The publication of a message whose delivery no consumer began, with its number of retries unchanged."""
    return await _to_retries(receipt, receipt.reconsume_times, Delay(seconds=delay_seconds))


async def dead_letter(receipt: FailedReceipt) -> Publication:
    """The publication of a failed message to its group's dead letters."""
    topic = await groups.dead_letter_topic(receipt.group_name)
    return _publication(receipt, topic, 0, receipt.reconsume_times, None)


async def _to_retries(receipt: FailedReceipt, reconsume_times: int, delay: Delay) -> Publication:
    topic = await groups.retry_topic(receipt.group_name)
    queue_id = await groups.retry_queue_of(receipt.group_id, receipt.group_name, receipt.origin_topic_id)
    return _publication(receipt, topic, queue_id, reconsume_times, delay)


def _publication(
    receipt: FailedReceipt, topic: TopicFacts, queue_id: int, reconsume_times: int, delay: Delay | None
) -> Publication:
    return Publication(
        message_id=None,
        topic_id=topic.id,
        queue_id=queue_id,
        log_segment=receipt.log_segment,
        log_offset=receipt.log_offset,
        tags_code=receipt.tags_code,
        reconsume_times=reconsume_times,
        delay=delay,
    )
