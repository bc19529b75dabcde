"""How far a consumer group is behind, and since when the oldest message waits that it has not acked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from delivery.models import ConsumerGroup
from store import blocking, lags
from store.database import Row
from store.statements import Statement

FIND_OLDEST_HELD = Statement(__file__, "find_oldest_held")


@dataclass(frozen=True, slots=True)
class QueueLag:
    """A queue that a group reads. `lag` are the entries that it was not handed yet.

    `oldest_unacked_at` is when the first message became visible that the group was not handed or has not acked; None
    without one. A message that waits for its retry counts again from when it is offered again.
    """

    topic: str
    queue_id: int
    next_offset: int
    max_offset: int
    lag: int
    moved_at: datetime | None
    oldest_unacked_at: datetime | None


def queues_of(group: ConsumerGroup) -> list[QueueLag]:
    """Each queue of the topics that the group has begun to read, its retries among them; see `lags.of`."""
    rows = lags.of(group.id)
    held = _oldest_held(group, rows)
    return [
        QueueLag(
            topic=row.topic,
            queue_id=row.queue_id,
            next_offset=row.next_offset,
            max_offset=row.max_offset,
            lag=row.lag,
            moved_at=row.moved_at,
            # What is held was visible before what is still to be handed out.
            oldest_unacked_at=held.get((row.topic_id, row.queue_id), row.next_entered_at),
        )
        for row in rows
    ]


def _oldest_held(group: ConsumerGroup, rows: Sequence[Row]) -> dict[tuple[int, int], datetime]:
    asked = {
        "group_id": group.id,
        "topic_id": [row.topic_id for row in rows],
        "queue_id": [row.queue_id for row in rows],
    }
    found = blocking.read(FIND_OLDEST_HELD, asked)
    return {(row.topic_id, row.queue_id): row.entered_at for row in found}
