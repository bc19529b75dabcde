"""Lags: how far a reader of queues is behind what has become visible."""

from collections.abc import Sequence

from store import blocking
from store.database import Row
from store.statements import Statement

FIND_LAGS = Statement(__file__, "find_lags")

MAX_QUEUES = 2000


def of(reader_id: int) -> Sequence[Row]:
    """Per queue of the topics the reader has begun to read: topic_id, topic, queue_id, next_offset, min_offset,
    max_offset, lag, moved_at and next_entered_at (since when its next entry is there, None without one).

    A queue without a move is newer than that, and is read from its first entry. MAX_QUEUES queues at most, by topic.
    """
    return blocking.read(FIND_LAGS, {"reader_id": reader_id, "max_queues": MAX_QUEUES})
