"""Writes what a consumer's failures leave: dead letters with the reason of their last nack, redrives, subscriptions."""

from datetime import timedelta
from typing import Any

from tests.console.rows import Broker


def dead_letter(
    broker: Broker, group: int, letters: int, message: Any, retries: int, ago: timedelta, reason: str | None = None
) -> int:
    """A message that a group gave up, in the group's topic of dead letters; its offset there."""
    offset = broker.ends.get((letters, 0), 0)
    broker.ends[letters, 0] = offset + 1
    broker.insert(
        "consume_queue",
        segment_id=broker.segment,
        topic_id=letters,
        queue_id=0,
        queue_offset=offset,
        log_segment=broker.segment,
        log_offset=message.log_offset,
        tags_code=0,
        reconsume_times=retries,
        entered_at=broker.now - ago,
    )
    if reason is not None:
        nack = {"group_id": group, "nonce": offset, "reconsume_times": retries, "reason": reason}
        place = {"segment_id": broker.segment, "log_offset": message.log_offset, "nacked_at": broker.now - ago}
        broker.insert("nack", **nack, **place)
    return offset


def redriven(broker: Broker, group: int, offset: int) -> None:
    """A dead letter that was sent again."""
    broker.insert("redrive", segment_id=broker.segment, group_id=group, queue_offset=offset, redriven_at=broker.now)


def subscription(broker: Broker, name: str, group: str, topic: str, url: str, **more: object) -> None:
    """A push subscription."""
    defaults = {"max_batch": 1, "timeout_seconds": 10, "concurrency": 16, "failures": 0, "state": "healthy"}
    known = {"name": name, "group_name": group, "topic_name": topic, "url": url, "secret": "whsec_c2VjcmV0"}
    broker.insert("subscription", **{"paused": False, **known, **defaults, **more})
