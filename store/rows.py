"""The types of rows that statements of store return. Their fields are the columns in their order.

A test prepares every statement and compares its columns with its type of row.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from store.messages import MessageRow


class Copy(NamedTuple):
    """One log position of a message. A message that was appended again has several."""

    segment_id: int
    log_offset: int
    topic_id: int
    queue_id: int
    transaction_id: UUID | None
    producer_group_id: int | None
    stored_at: datetime
    body_bytes: int


class EntryRow(MessageRow, gc=False):
    """An entry of a queue with its message, and the total bytes of the bodies before it on its page."""

    entry_queue_id: int
    queue_offset: int
    reconsume_times: int
    bytes_before: int


class Head(NamedTuple):
    """An entry for a filter: the message without its body. `origin_topic_id`: the topic it was sent to."""

    entry_topic_id: int
    entry_queue_id: int
    queue_offset: int
    tags_code: int
    reconsume_times: int
    segment_id: int
    log_offset: int
    origin_topic_id: int
    sharding_key: str | None
    tags: str | None
    properties: bytes | None
    body_bytes: int


class Lag(NamedTuple):
    """A reader's next offset in a queue, the queue's bounds, and the lag, the number of entries between."""

    reader_id: int
    topic_id: int
    topic: str
    queue_id: int
    min_offset: int
    max_offset: int
    moved_at: datetime | None
    next_entered_at: datetime | None
    next_offset: int
    lag: int


class PositionRow(NamedTuple):
    """A reader's newest move in a queue (NULL before its first), and the queue's bounds."""

    topic_id: int
    queue_id: int
    next_offset: int | None
    move: int | None
    min_offset: int
    max_offset: int
    begun: bool


class Preview(NamedTuple):
    """A stored message with the first bytes of its body, `beginning`. `size` is the size of the whole body in bytes."""

    segment_id: int
    log_offset: int
    message_id: UUID
    queue_id: int
    stored_at: datetime
    born_at: datetime | None
    tags: str | None
    keys: list[str] | None
    sharding_key: str | None
    traceparent: str | None
    properties: bytes | None
    topic_id: int
    topic: str | None
    beginning: bytes
    size: int
    body_form: str


class QueueBounds(NamedTuple):
    """The lowest offset that a queue still holds, its next offset, and the time of its newest entry."""

    topic_id: int
    queue_id: int
    min_offset: int
    max_offset: int
    last_stored_at: datetime | None

    @property
    def entries(self) -> int:
        """The number of entries that the queue holds. Offsets have no hole, so it is a difference."""
        return self.max_offset - self.min_offset
