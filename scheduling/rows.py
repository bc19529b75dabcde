"""The rows that the statements of scheduling return: one type per shape, its fields the columns in their order.

A test prepares every statement and compares its columns with its type.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID


class Clock(NamedTuple):
    """The database's time."""

    now: datetime


class DeletedTimer(NamedTuple):
    """A timer that was recalled."""

    id: UUID


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


class DueTimer(NamedTuple):
    """A timer that was deleted because it is due, and the database's time then."""

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
    """An entry of a message. One of a delay level's queue has a real topic and queue, and waits until its release.

    `due_at` is the time of the timer whose release made it.
    """

    topic_id: int
    queue_id: int
    queue_offset: int
    reconsume_times: int
    entered_at: datetime
    real_topic_id: int | None
    real_queue_id: int | None
    due_ms: int
    due_at: datetime | None
    waits: bool
    recalled: bool


class Fate(NamedTuple):
    """Whether a message is visible, and whether its segment is kept, so that an entry of it would be."""

    message_id: UUID
    visible: bool
    kept: bool


class LatenessRow(NamedTuple):
    """The releases of the last hour of one level's queue, or of timers, per bucket of lateness."""

    queue_id: int
    counts: list[int]


class LevelBacklog(NamedTuple):
    """A level's queue: the next offset of the release, `low`, and the offset after the last entry, `high`."""

    topic_id: int
    queue_id: int
    low: int
    high: int
    backlog: int


class LevelForecast(NamedTuple):
    """The entries of a level's queue that become due in one of the coming minutes."""

    queue_id: int
    minute: int
    deliveries: int


class LevelHead(NamedTuple):
    """The entry of a level's queue that is released next, and the database's time."""

    queue_id: int
    queue_offset: int
    due_ms: int
    entered_at: datetime
    now: datetime


class LockedTimer(NamedTuple):
    """A timer whose message lies in the leaving segment, locked."""

    id: UUID
    log_segment: int
    log_offset: int


class NextTimer(NamedTuple):
    """The due time of the next timer, None without timers, and the database's time."""

    due_at: datetime | None
    now: datetime


class ScanStep(NamedTuple):
    """A step of the scan for timers in the leaving segment: the last id read, None after the end, and those found."""

    last_id: UUID | None
    old: list[UUID]


class Plan(NamedTuple):
    """PostgreSQL's plan of a query, as JSON."""

    plan: Any


class RecalledEntry(NamedTuple):
    """A recalled entry of a level's queue."""

    queue_offset: int


class Standing(NamedTuple):
    """A message that was delayed: visible in a queue, waiting in a timer or a level's queue, or neither (all None)."""

    message_id: UUID
    kept: bool
    visible: bool | None
    timer_id: UUID | None
    due_at: datetime | None
    queue_id: int | None
    queue_offset: int | None


class TimerEnds(NamedTuple):
    """The due time of the next timer, the store time of the oldest, each None without timers; the database's time."""

    next_due_at: datetime | None
    oldest_at: datetime | None
    now: datetime


class TimerForecast(NamedTuple):
    """The timers that become due in one of the coming minutes, and the timers counted in all minutes together."""

    minute: int
    deliveries: int
    counted: Decimal


class TimerOfMessage(NamedTuple):
    """A timer that a message, or a retry of it, waits in."""

    due_at: datetime
    topic_id: int
    queue_id: int
    reconsume_times: int
