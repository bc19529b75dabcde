"""Deliveries: what a receive asks for, what it gets, and how the API gives that out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delivery import receipts
from delivery.filters import Filter
from delivery.groups import GroupFacts
from store import messages
from store.budget import Hold
from store.db.connections import Row
from store.topics import DEAD_LETTER_PREFIX, TopicFacts

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
    # The retries that another group gave it before it became the dead letter that is read here.
    died_after: int | None = None


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
    # The bytes that its answer holds.
    hold: Hold = field(default_factory=Hold)

    @property
    def of_dead_letters(self) -> bool:
        """Whether it reads what some group has given up."""
        return self.topic.name.startswith(DEAD_LETTER_PREFIX)


def given_out(take: Take, taken: Taken, origins: Mapping[int, str]) -> dict[str, Any]:
    """A delivery as the API gives it out; `origins` are the names of the topics that dead letters come from."""
    row = taken.row
    message = messages.given_out(row, take.topic.name)
    message["reconsume_times"] = taken.reconsume_times
    retries = taken.reconsume_times if taken.died_after is None else taken.died_after
    if retries or taken.died_after is not None:
        origin = origins[row.topic_id] if take.of_dead_letters else take.topic.name
        tell_retries(message, origin, retries)
    return {
        "message": message,
        "queue_id": taken.queue[1],
        "queue_offset": taken.queue_offset,
        "delivery_attempt": taken.reconsume_times + 1,
        "receipt_handle": receipts.handle(take.group.id, *taken.queue, taken.queue_offset, taken.nonce),
    }


def tell_retries(message: dict[str, Any], origin: str, reconsume_times: int) -> None:
    """Adds what RocketMQ's consumers read of a retried message, and of a dead letter."""
    message["properties"] = {
        "RETRY_TOPIC": origin,
        "ORIGIN_MESSAGE_ID": str(message["message_id"]),
        "RECONSUME_TIME": str(reconsume_times),
        **message.get("properties", {}),
    }
