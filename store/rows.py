"""The rows that the statements of store return: one type per shape, its fields the columns in their order.

A test prepares every statement and compares its columns with its type.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from store.messages import MessageRow


class Appended(NamedTuple):
    """A message that was appended to the commit log, with the offset it got."""

    log_offset: int
    message_id: UUID


class Copy(NamedTuple):
    """One place of a message in the commit log: it has several after it was appended again."""

    segment_id: int
    log_offset: int
    topic_id: int
    queue_id: int
    transaction_id: UUID | None
    producer_group_id: int | None
    stored_at: datetime
    body_bytes: int


class DeletedProgress(NamedTuple):
    """A move that was deleted, by its reader."""

    reader_id: int


class Enqueued(NamedTuple):
    """An entry that was added to a queue, with the offset it got."""

    topic_id: int
    queue_id: int
    queue_offset: int
    log_offset: int


class EntriesSince(NamedTuple):
    """Entries of all queues: kept, and added within the last `seconds`; each also of the discarded topic alone."""

    seconds: int
    kept: int
    discarded_kept: int
    entries: int
    discarded: int


class EntryRow(MessageRow, gc=False):
    """An entry of a queue with its message, and the bytes of the bodies before it on its page."""

    entry_queue_id: int
    queue_offset: int
    reconsume_times: int
    bytes_before: int


class EverStored(NamedTuple):
    """Log offsets ever taken, those of failed writes included."""

    messages: int


class FirstEntry(NamedTuple):
    """The first entry of a message in a topic."""

    message_id: UUID
    queue_id: int
    queue_offset: int
    reconsume_times: int


class Head(NamedTuple):
    """What a filter reads of an entry: the message without its body."""

    entry_topic_id: int
    entry_queue_id: int
    queue_offset: int
    tags_code: int
    reconsume_times: int
    segment_id: int
    log_offset: int
    sharding_key: str | None
    tags: str | None
    properties: bytes | None
    body_bytes: int


class HeldLog(NamedTuple):
    """The lock of the log, held alone, and the lock time-out of the transaction."""

    lock_timeout: str
    held: None


class Joined(NamedTuple):
    """The lock of the log, shared with the other writers."""

    pg_advisory_xact_lock_shared: None


class KeyHead(NamedTuple):
    """A message with a key, without its body; NULLs beside `looked_at` when there is none."""

    looked_at: int
    message_id: UUID | None
    topic_id: int | None
    topic: str | None
    transaction_id: UUID | None
    stored_at: datetime | None
    tags: str | None
    keys: list[str] | None
    size: int | None


class KeyMatch(NamedTuple):
    """A message with the key; one row of NULLs beside `looked_at` when there is none."""

    looked_at: int
    segment_id: int | None
    log_offset: int | None
    message_id: UUID | None
    size: int | None


class KeysOfMessage(NamedTuple):
    """The keys of a message, by its offset in the log."""

    log_offset: int
    keys: list[str]


class Lag(NamedTuple):
    """A reader's next offset in a queue, the queue's bounds, and the entries between."""

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


class ListedEntry(NamedTuple):
    """An entry in a list by time, with the place and size of its message."""

    queue_id: int
    queue_offset: int
    reconsume_times: int
    entered_at: datetime
    segment_id: int
    log_offset: int
    message_id: UUID
    size: int


class Locked(NamedTuple):
    """An advisory lock, held until the end of the transaction."""

    pg_advisory_xact_lock: None


class LogOffsetsSince(NamedTuple):
    """The log offsets of the last `seconds`: from `since_offset` up to, not with, `next_offset`."""

    seconds: int
    lowest: int
    since_offset: int
    next_offset: int


class NewestEntry(NamedTuple):
    """An entry with the head of its message; from `message_id` on None where retention has dropped the message."""

    queue_offset: int
    reconsume_times: int
    entered_at: datetime
    message_id: UUID | None
    transaction_id: UUID | None
    tags: str | None
    keys: list[str] | None
    stored_at: datetime | None


class Notified(NamedTuple):
    """A notice that was sent."""

    pg_notify: None


class OpenSegment(NamedTuple):
    """The open segment and the transaction's time."""

    id: int
    now: datetime


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
    """A stored message with the first bytes of its body, `beginning`; `size` is the whole body's, in bytes."""

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


class QueueBounds(NamedTuple):
    """A queue's lowest offset kept, its next offset, and the time of its newest entry."""

    topic_id: int
    queue_id: int
    min_offset: int
    max_offset: int
    last_stored_at: datetime | None

    @property
    def entries(self) -> int:
        """Entries that the queue holds: offsets are dense."""
        return self.max_offset - self.min_offset


class ReaderId(NamedTuple):
    """A reader that has progress."""

    reader_id: int


class TopicEntries(NamedTuple):
    """All entries that a topic ever had."""

    topic: str
    entries: int


class TriedLock(NamedTuple):
    """An advisory lock, and whether it was free."""

    key: int
    taken: bool


class VisibleEntry(NamedTuple):
    """The topic of an entry that consumers can see."""

    topic_id: int


class WalkedKeyMatch(NamedTuple):
    """A message with the key, and where the walk goes on: NULL at the end; the rest is NULL without a match."""

    go_on_below: int | None
    segment_id: int | None
    log_offset: int | None
    message_id: UUID | None
    size: int | None
