"""Redeliveries: where a message goes that its consumer did not finish."""

from django.conf import settings

from delivery import groups, retry_policies
from scheduling import delays
from scheduling.delays import Delay
from scheduling.publish import Publication
from store.db.connections import Row
from store.topics import TopicFacts


class Failed:
    """A delivery that failed: how long its message waits before it comes again."""

    def __init__(self, receipt: Row) -> None:
        limit = settings.MAX_RECONSUME_TIMES if receipt.max_reconsume_times is None else receipt.max_reconsume_times
        # None: it had all its retries, and is a dead letter.
        self.delay: Delay | None = None
        if receipt.reconsume_times < limit:
            self.delay = retry_policies.delay(receipt.retry_policy, receipt.reconsume_times)

    @property
    def delay_seconds(self) -> float:
        """The wait in seconds, also where the policy names a delay level."""
        if self.delay is None or self.delay.level is None:
            return (self.delay.seconds if self.delay is not None else None) or 0.0
        return float(delays.seconds_of_level(self.delay.level))


async def again(receipt: Row, delay_seconds: float | None = None) -> Publication:
    """The message of a receipt on its way to its group's retries, or to the dead letters when it had all of them.

    `delay_seconds` is the consumer's own wish, else the group's retry policy decides.
    """
    failed = Failed(receipt)
    if failed.delay is None:
        return await dead_letter(receipt)
    topic = await groups.retry_topic(receipt.group_name)
    queue_id = await groups.retry_queue_of(receipt.group_id, receipt.group_name, receipt.origin_topic_id)
    wait = failed.delay if delay_seconds is None else Delay(seconds=delay_seconds)
    return _publication(receipt, topic, queue_id, receipt.reconsume_times + 1, wait)


async def dead_letter(receipt: Row) -> Publication:
    """The message of a receipt on its way to its group's dead letters."""
    topic = await groups.dead_letter_topic(receipt.group_name)
    return _publication(receipt, topic, 0, receipt.reconsume_times, None)


def _publication(
    receipt: Row, topic: TopicFacts, queue_id: int, reconsume_times: int, delay: Delay | None
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
