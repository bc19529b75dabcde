"""Pull by offset: reads a queue and keeps nothing about the reader; for replay, broadcast and streams."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from delivery.receive import deliveries
from store import messages, notifier, queues, topics
from store.budget import Hold
from store.errors import MessageIllegal, OffsetOutOfRange, QueueIllegal
from store.topics import TopicFacts

MAX_MESSAGES = 1000
DEFAULT_MESSAGES = 32


@dataclass(frozen=True, slots=True)
class Pulled:
    """A stretch of a queue: its entries, each made when it is asked for, and where the stretch and the queue end."""

    messages: Iterator[dict[str, Any]]
    bounds: dict[str, int]


async def pull(topic_name: str, queue_id: int, offset: int, max_messages: int, wait_seconds: float) -> dict[str, Any]:
    """As `stretch`, whole."""
    with Hold() as hold:
        found = await stretch(topic_name, queue_id, offset, max_messages, wait_seconds, hold)
        return {"messages": list(found.messages), **found.bounds}


async def stretch(
    topic_name: str, queue_id: int, offset: int, max_messages: int, wait_seconds: float, hold: Hold
) -> Pulled:
    """The entries of a queue from an offset on, with the queue's bounds; waits for the first one when there is none.

    The bodies count in `hold`. Raises TopicNotExist, QueueIllegal, MessageIllegal, SystemBusy, or OffsetOutOfRange with
    both bounds.
    """
    topic = await topics.for_reading(topic_name)
    if not 0 <= queue_id < topic.queues:
        raise QueueIllegal(f"The topic {topic.name} has no queue {queue_id}: its queues are 0 to {topic.queues - 1}.")
    if not 1 <= max_messages <= MAX_MESSAGES:
        raise MessageIllegal(f"max {max_messages} is not between 1 and {MAX_MESSAGES}.")
    if not 0 <= wait_seconds <= settings.MAX_WAIT_SECONDS:
        raise MessageIllegal(f"wait_seconds {wait_seconds} is not between 0 and {settings.MAX_WAIT_SECONDS}.")
    deadline = time.monotonic() + wait_seconds
    with notifier.listening((topic.id,), object()) as waiter:
        while True:
            rows = await queues.read(topic.id, queue_id, offset, max_messages, hold)
            bounds = (await queues.bounds(topic.id, topic.queues))[queue_id]
            held = bool(rows) and rows[0].queue_offset == offset
            if not held and not bounds.min_offset <= offset <= bounds.max_offset:
                raise out_of_range(topic.name, queue_id, offset, bounds.min_offset, bounds.max_offset)
            left = deadline - time.monotonic()
            if rows or left <= 0:
                break
            await waiter.wait(min(left, 5.0))
    names = await topics.names({row.topic_id for row in rows})
    return Pulled(
        messages=(_entry(row, names[row.topic_id], topic) for row in rows),
        bounds={
            "next_offset": rows[-1].queue_offset + 1 if rows else offset,
            "min_offset": bounds.min_offset,
            "max_offset": bounds.max_offset,
        },
    )


def out_of_range(topic: str, queue_id: int, offset: int, min_offset: int, max_offset: int) -> OffsetOutOfRange:
    """The refusal of an offset that the queue does not hold, with both bounds."""
    return OffsetOutOfRange(
        f"Queue {queue_id} of {topic} has no offset {offset}: it holds {min_offset} up to, not with, {max_offset}.",
        min_offset=min_offset,
        max_offset=max_offset,
    )


def _entry(row: Any, origin: str, topic: TopicFacts) -> dict[str, Any]:
    message = messages.given_out(row, origin)
    message["reconsume_times"] = row.reconsume_times
    if topic.name.startswith(topics.DEAD_LETTER_PREFIX):
        deliveries.tell_retries(message, origin, row.reconsume_times)
    return {"message": message, "queue_id": row.queue_id, "queue_offset": row.queue_offset}
