"""Numbers of delayed messages: backlog and next due time per delay level, timers, and a forecast by the minute."""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings

from scheduling import delays
from scheduling.models import Timer
from scheduling.release import DELAY_LEVEL_HEADS, QUEUES_OF_LEVELS
from scheduling.rows import LevelBacklog, LevelForecast, TimerEnds, TimerForecast
from store.cells import cells
from store.db import sync
from store.db.statements import Statement
from store.models import Topic
from store.naming import topic_names
from store.reading import merging
from store.reading.merging import Part

DELAY_BACKLOGS = Statement(__file__, "delay_backlogs", LevelBacklog)
ESTIMATE_TIMERS = Statement(__file__, "estimate_timers", one=list[Any])
FIND_TIMER_ENDS = Statement(__file__, "find_timer_ends", TimerEnds)
FORECAST_LEVELS = Statement(__file__, "forecast_levels", LevelForecast)
FORECAST_TIMERS = Statement(__file__, "forecast_timers", TimerForecast)

# Timers that are counted; beyond this the number is a lower bound. A metric reads the count every few seconds.
MAX_TIMERS = 1_000_000
# The number of minutes in the forecast.
MINUTES = 60
# Timers that the forecast counts; timers due later are estimated. Counting 10,000 by index takes about 5 ms.
MAX_FORECAST_TIMERS = 10_000


@dataclass(frozen=True, slots=True)
class Outermost:
    """The oldest and the next message of a level or of the timers, and the database's time. None: no message waits."""

    oldest_at: datetime | None
    next_due_at: datetime | None
    now: datetime

    @property
    def oldest_seconds(self) -> float | None:
        """For how many seconds the oldest message has waited."""
        return None if self.oldest_at is None else (self.now - self.oldest_at).total_seconds()

    @property
    def next_due_seconds(self) -> float | None:
        """In how many seconds the next message is due; negative if it is overdue."""
        return None if self.next_due_at is None else (self.next_due_at - self.now).total_seconds()


@dataclass(frozen=True, slots=True)
class Level:
    """A delay level. `delay_seconds` is None for a level that was removed from the settings and still has a backlog."""

    level: int
    delay_seconds: int | None
    backlog: int
    oldest_at: datetime | None
    next_due_at: datetime | None


def levels() -> list[Level]:
    """All delay levels of the settings, and removed levels that still have a backlog."""
    waiting = backlogs()
    ends = level_ends()
    configured = dict(enumerate(settings.DELAY_LEVELS, start=1))
    known = sorted(configured.keys() | {level for level, backlog in waiting.items() if backlog})
    return [_level(level, configured.get(level), waiting.get(level, 0), ends.get(level)) for level in known]


def _level(level: int, delay_seconds: int | None, backlog: int, ends: Outermost | None) -> Level:
    if ends is None:
        return Level(level, delay_seconds, backlog, None, None)
    return Level(level, delay_seconds, backlog, ends.oldest_at, ends.next_due_at)


def backlogs() -> dict[int, int]:
    """The backlog of every delay level that the schedule topic has a queue for."""
    found: dict[int, int] = defaultdict(int)
    for rows in cells.ask(_backlogs).values():
        for row in rows:
            found[delays.level_of(row.queue_id)] += row.backlog
    return dict(found)


def _backlogs() -> Sequence[LevelBacklog]:
    return sync.read(DELAY_BACKLOGS, QUEUES_OF_LEVELS)


def level_ends() -> dict[int, Outermost]:
    """The oldest and the next message of each delay level that has waiting messages."""
    found: dict[int, list[Outermost]] = defaultdict(list)
    for rows in cells.ask(lambda: sync.read(DELAY_LEVEL_HEADS, QUEUES_OF_LEVELS)).values():
        for row in rows:
            found[delays.level_of(row.queue_id)].append(Outermost(row.entered_at, delays.time_of(row.due_ms), row.now))
    return {level: _outermost(ends) for level, ends in found.items()}


def _outermost(ends: Sequence[Outermost]) -> Outermost:
    """The oldest and the next message of several cells together."""
    oldest_at = min((one.oldest_at for one in ends if one.oldest_at), default=None)
    next_due_at = min((one.next_due_at for one in ends if one.next_due_at), default=None)
    return Outermost(oldest_at, next_due_at, ends[0].now)


def level_forecast() -> dict[int, list[int]]:
    """For each delay level with a backlog: the exact number of messages that become due in each of the next MINUTES
    minutes.
    """
    found: dict[int, list[int]] = defaultdict(lambda: [0] * MINUTES)
    for rows in cells.ask(_level_forecast).values():
        for row in rows:
            found[delays.level_of(row.queue_id)][row.minute - 1] += row.deliveries
    return dict(found)


def _level_forecast() -> Sequence[LevelForecast]:
    rows = [row for row in _backlogs() if row.backlog]
    waiting = {name: [getattr(row, name) for row in rows] for name in ("queue_id", "topic_id", "low", "high")}
    return sync.read(FORECAST_LEVELS, {**waiting, "minutes": MINUTES})


def timers() -> int:
    """The number of timers, counted up to MAX_TIMERS."""
    return min(sum(cells.ask(lambda: Timer.objects.order_by()[:MAX_TIMERS].count()).values()), MAX_TIMERS)


def timer_ends() -> Outermost:
    """The oldest and the next message of the timers."""
    found = cells.ask(lambda: sync.read(FIND_TIMER_ENDS)[0])
    return _outermost([Outermost(row.oldest_at, row.next_due_at, row.now) for row in found.values()])


class NextTimer(NamedTuple):
    """A timer. `message_id` is None for a retry."""

    due_at: datetime
    message_id: uuid.UUID | None
    topic: str
    retries: int


def next_timers(count: int) -> list[NextTimer]:
    """The `count` timers that are due first."""

    def read(_: None, most: int) -> Part[Timer, None]:
        return Part([(timer, None) for timer in Timer.objects.order_by("due_at", "id")[:most]], None)

    first = merging.from_start(None)
    rows = merging.page(
        read, first, count, lambda timer, _: timer.due_at, lambda timer: (timer.topic_id,), descending=False
    ).rows
    names = dict(Topic.objects.filter(id__in={row.topic_id for row in rows}).values_list("id", "name"))
    return [
        NextTimer(
            row.due_at,
            row.message_id,
            names.get(row.topic_id) or topic_names.deleted(row.topic_id),
            row.reconsume_times,
        )
        for row in rows
    ]


def timer_forecast() -> tuple[list[int], bool]:
    """Timers due in each of the next MINUTES minutes, and whether the later minutes are estimates."""
    found = cells.ask(_timer_forecast).values()
    by_minute = zip(*(deliveries for deliveries, _ in found), strict=True)
    return [sum(of_minute) for of_minute in by_minute], any(estimated for _, estimated in found)


def _timer_forecast() -> tuple[list[int], bool]:
    rows = sync.read(FORECAST_TIMERS, {"minutes": MINUTES, "max_counted": MAX_FORECAST_TIMERS})
    deliveries = [0] * MINUTES
    for row in rows:
        deliveries[row.minute - 1] = row.deliveries
    estimated = bool(rows) and rows[0].counted >= MAX_FORECAST_TIMERS
    if estimated:
        # If the limit was reached, the last minute was counted only in part.
        for minute in range(rows[-1].minute, MINUTES + 1):
            deliveries[minute - 1] = max(_estimate(minute), deliveries[minute - 1])
    return deliveries, estimated


def _estimate(minute: int) -> int:
    [plan] = sync.read(ESTIMATE_TIMERS, {"minute": minute})
    return int(plan[0]["Plan"]["Plan Rows"])
