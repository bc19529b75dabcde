"""The rows that the statements of store return: one type per shape, its fields the columns in their order.

A test prepares every statement and compares its columns with its type.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class Appended(NamedTuple):
    """A row of append_messages."""

    log_offset: int
    message_id: UUID


class Copy(NamedTuple):
    """A row of find_copies."""

    segment_id: int
    log_offset: int
    topic_id: int
    queue_id: int
    transaction_id: UUID | None
    producer_group_id: int | None
    stored_at: datetime


class DeletedProgress(NamedTuple):
    """A row of delete_progress."""

    reader_id: int


class Enqueued(NamedTuple):
    """A row of enqueue_entries, enqueue_first_entries."""

    topic_id: int
    queue_id: int
    queue_offset: int
    log_offset: int


class EntriesSince(NamedTuple):
    """A row of entries_since."""

    seconds: int
    kept: int
    discarded_kept: int
    entries: int
    discarded: int


class EntryRow(NamedTuple):
    """A row of read_entries."""

    queue_id: int
    queue_offset: int
    tags_code: int
    reconsume_times: int
    entered_at: datetime
    segment_id: int
    log_offset: int
    stored_at: datetime
    born_at: datetime | None
    topic_id: int
    message_id: UUID
    transaction_id: UUID | None
    tags: str | None
    keys: list[str] | None
    sharding_key: str | None
    traceparent: str | None
    properties: bytes | None
    body: bytes
    body_form: str


class EverStored(NamedTuple):
    """A row of ever_stored."""

    messages: int


class ExpiringSegment(NamedTuple):
    """A row of find_expiring_segments."""

    id: int
    before_id: int
    is_over: bool


class FirstEntry(NamedTuple):
    """A row of find_first_entries."""

    message_id: UUID
    queue_id: int
    queue_offset: int
    reconsume_times: int


class Head(NamedTuple):
    """A row of read_heads."""

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
    """A row of hold_log."""

    lock_timeout: str
    held: None


class Joined(NamedTuple):
    """A row of join_writers."""

    pg_advisory_xact_lock_shared: None


class KeyMatch(NamedTuple):
    """A row of find_by_key."""

    looked_at: int
    segment_id: int
    log_offset: int
    message_id: UUID
    size: int


class Lag(NamedTuple):
    """A row of find_lags."""

    topic_id: int
    topic: str
    queue_id: int
    min_offset: int
    max_offset: int
    moved_at: datetime
    next_entered_at: datetime
    next_offset: int
    lag: int


class LeavingSegment(NamedTuple):
    """A row of find_leaving_segment."""

    segment_id: int


class ListedEntry(NamedTuple):
    """A row of list_entries."""

    queue_id: int
    queue_offset: int
    reconsume_times: int
    entered_at: datetime
    segment_id: int
    log_offset: int
    message_id: UUID
    size: int


class Locked(NamedTuple):
    """A row of lock_queues, take_locks."""

    pg_advisory_xact_lock: None


class LogOffsetsSince(NamedTuple):
    """A row of log_offsets_since."""

    seconds: int
    lowest: int
    since_offset: int
    next_offset: int


class Maintenance(NamedTuple):
    """A row of take_maintenance."""

    taken: bool
    lock_timeout: str
    statement_timeout: str


class MessageRow(NamedTuple):
    """A row of read_messages."""

    log_offset: int
    segment_id: int
    stored_at: datetime
    born_at: datetime | None
    topic_id: int
    queue_id: int
    message_id: UUID
    transaction_id: UUID | None
    tags: str | None
    keys: list[str] | None
    sharding_key: str | None
    traceparent: str | None
    properties: bytes | None
    body: bytes
    body_form: str


class Notified(NamedTuple):
    """A row of notify_visible."""

    pg_notify: None


class OpenSegment(NamedTuple):
    """A row of open_segment."""

    id: int
    now: datetime


class OpenSegmentState(NamedTuple):
    """A row of look_at_segments."""

    id: int
    open_hours: float
    messages: int
    ready_id: int


class PartitionRow(NamedTuple):
    """A row of find_partitions."""

    table_name: str
    partition_name: str
    state: str


class PositionRow(NamedTuple):
    """A row of find_positions."""

    topic_id: int
    queue_id: int
    next_offset: int
    move: int
    min_offset: int
    max_offset: int
    begun: bool


class QueueBounds(NamedTuple):
    """A row of queue_bounds."""

    queue_id: int
    min_offset: int
    max_offset: int
    last_stored_at: datetime


class ReaderId(NamedTuple):
    """A row of find_readers."""

    reader_id: int


class Reappended(NamedTuple):
    """A row of find_again."""

    log_segment: int
    log_offset: int
    new_offset: int


class StoredBefore(NamedTuple):
    """A row of find_messages."""

    segment_id: int
    log_offset: int
    message_id: UUID
    topic_id: int
    queue_id: int
    transaction_id: UUID | None
    stored_at: datetime
    body: bytes
    entry_queue_id: int
    queue_offset: int


class TableName(NamedTuple):
    """A row of find_holders_of_log, find_unanalyzed."""

    table_name: str


class TopicEntries(NamedTuple):
    """A row of entries_by_topic."""

    topic: str
    entries: int


class TopicRow(NamedTuple):
    """A row of find_topic, find_topics."""

    id: int
    name: str
    queues: int
    permission: str


class TriedLock(NamedTuple):
    """A row of try_lock_readers."""

    key: int
    taken: bool


class UnreleasedQueue(NamedTuple):
    """A row of find_unreleased."""

    queue_id: int


class WalkedKeyMatch(NamedTuple):
    """A row of walk_log_by_key."""

    go_on_below: int
    segment_id: int
    log_offset: int
    message_id: UUID
    size: int
