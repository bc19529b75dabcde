"""Deliveries: what a receive asks for, what it gets, and how the API gives that out."""

from dataclasses import dataclass, field
from typing import Any

from delivery import receipts
from delivery.filters import Filter
from delivery.groups import GroupFacts
from store import messages
from store.database import Row
from store.topics import TopicFacts

# A queue by its topic's id and its number.
Queue = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that is handed out: its row of the log, its place, this delivery's nonce, the retries before it."""

    row: Row
    queue: Queue
    queue_offset: int
    nonce: int
    reconsume_times: int


@dataclass(slots=True)
class Take:
    """One receive, judged; `queues` are the (topic, queue) pairs it reads, the retries first."""

    group: GroupFacts
    topic: TopicFacts
    queues: list[Queue]
    wants: Filter | None
    max_messages: int
    invisible_seconds: float
    taken: list[Taken] = field(default_factory=list)
    # It got nothing, but there may be more behind what its filter passed over or behind large bodies: it asks again.
    more: bool = False


def given_out(take: Take, taken: Taken) -> dict[str, Any]:
    """A delivery as the API gives it out."""
    row = taken.row
    message = messages.given_out(row, take.topic.name)
    message["reconsume_times"] = taken.reconsume_times
    if taken.reconsume_times:
        message["properties"] = {**_retry_properties(take, taken), **_properties(message)}
    return {
        "message": message,
        "queue_id": taken.queue[1],
        "queue_offset": taken.queue_offset,
        "delivery_attempt": taken.reconsume_times + 1,
        "receipt_handle": receipts.handle(take.group.id, *taken.queue, taken.queue_offset, taken.nonce),
    }


def _properties(message: dict[str, object]) -> dict[str, str]:
    found = message.get("properties")
    return found if isinstance(found, dict) else {}


def _retry_properties(take: Take, taken: Taken) -> dict[str, str]:
    """What RocketMQ's consumers read of a retried message."""
    return {
        "RETRY_TOPIC": take.topic.name,
        "ORIGIN_MESSAGE_ID": str(taken.row.message_id),
        "RECONSUME_TIME": str(taken.reconsume_times),
    }
