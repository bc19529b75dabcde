"""The rows that the statements of scheduling return: one type per shape, its fields the columns in their order.

A test prepares every statement and compares its columns with its type.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID


class DeletedTimer(NamedTuple):
    """A row of delete_timer."""

    id: UUID


class DueEntry(NamedTuple):
    """A row of take_due_of_level."""

    queue_offset: int
    due_ms: int
    log_segment: int
    log_offset: int
    reconsume_times: int
    real_topic_id: int | None
    real_queue_id: int | None
    real_tags_code: int | None
    now: datetime


class DueTimer(NamedTuple):
    """A row of take_timers."""

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


class EntryOfMessage(NamedTuple):
    """A row of find_entries_of_message."""

    topic_id: int
    queue_id: int
    queue_offset: int
    reconsume_times: int
    entered_at: datetime
    real_topic_id: int | None
    real_queue_id: int | None
    due_ms: int
    waits: bool
    recalled: bool


class Fate(NamedTuple):
    """A row of find_fate."""

    message_id: UUID
    visible: bool
    told: bool


class LatenessRow(NamedTuple):
    """A row of sum_lateness."""

    queue_id: int
    counts: list[int]


class LevelBacklog(NamedTuple):
    """A row of delay_backlogs."""

    level: int
    topic_id: int
    queue_id: int
    low: int
    high: int
    backlog: int


class LevelForecast(NamedTuple):
    """A row of forecast_levels."""

    queue_id: int
    minute: int
    deliveries: int


class LevelHead(NamedTuple):
    """A row of delay_level_heads."""

    queue_id: int
    queue_offset: int
    due_ms: int
    entered_at: datetime
    now: datetime


class LockedTimer(NamedTuple):
    """A row of lock_old_timers."""

    id: UUID
    log_segment: int
    log_offset: int


class NextTimer(NamedTuple):
    """A row of next_timer."""

    due_at: datetime
    now: datetime


class OldTimers(NamedTuple):
    """A row of find_old_timers."""

    last_id: UUID
    old: list[UUID]


class Plan(NamedTuple):
    """A row of estimate_timers."""

    plan: Any


class RecalledEntry(NamedTuple):
    """A row of insert_recall, take_recalls."""

    queue_offset: int


class Standing(NamedTuple):
    """A row of find_standings."""

    message_id: UUID
    told: bool
    visible: bool
    timer_id: UUID
    due_at: datetime
    queue_id: int
    queue_offset: int


class TimerEnds(NamedTuple):
    """A row of look_at_timers."""

    next_due_at: datetime
    oldest_at: datetime
    now: datetime


class TimerForecast(NamedTuple):
    """A row of forecast_timers."""

    minute: int
    deliveries: int
    counted: Decimal


class TimerOfMessage(NamedTuple):
    """A row of find_timers_of_message."""

    due_at: datetime
    topic_id: int
    queue_id: int
    reconsume_times: int
