"""The rows that the statements of scheduling return: one type per shape, its fields the columns in their order.

A test prepares every statement and compares its columns with its type.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class Standing(NamedTuple):
    """The standing of a delayed message: visible in a queue, waiting in a timer or level's queue, or neither (None)."""

    message_id: UUID
    kept: bool
    visible: bool | None
    timer_id: UUID | None
    due_at: datetime | None
    queue_id: int | None
    queue_offset: int | None


class NextTimer(NamedTuple):
    """The due time of the next timer, None without timers, and the database's time."""

    due_at: datetime | None
    now: datetime


class LevelHead(NamedTuple):
    """The entry of a level's queue that is released next, and the database's time."""

    queue_id: int
    queue_offset: int
    due_ms: int
    entered_at: datetime
    now: datetime


class DueTimer(NamedTuple):
    """A timer that was deleted because it is due, and the database's time at the delete."""

    id: UUID
    due_at: datetime
    message_id: UUID | None
    log_segment: int
    log_offset: int
    topic_id: int
    queue_id: int
    tags_code: int
    reconsume_times: int
    now: datetime


class DueEntry(NamedTuple):
    """The next entry of a level's queue, with its real topic and queue, and the database's time after it was stored."""

    queue_offset: int
    due_ms: int
    log_segment: int
    log_offset: int
    reconsume_times: int
    real_topic_id: int
    real_queue_id: int
    real_tags_code: int
    now: datetime
