"""Numbers of what waits: backlog and next due time per delay level, timers, and a forecast by the minute."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings

from scheduling.models import Timer
from scheduling.release import DELAY_LEVEL_HEADS
from scheduling.rows import LevelBacklog, LevelForecast, Plan, TimerEnds, TimerForecast
from store import progress, topics
from store.db import sync
from store.db.connections import Row
from store.db.statements import Statement

DELAY_BACKLOGS = Statement(__file__, "delay_backlogs", LevelBacklog)
ESTIMATE_TIMERS = Statement(__file__, "estimate_timers", Plan)
FORECAST_LEVELS = Statement(__file__, "forecast_levels", LevelForecast)
FORECAST_TIMERS = Statement(__file__, "forecast_timers", TimerForecast)
LOOK_AT_TIMERS = Statement(__file__, "look_at_timers", TimerEnds)

MAX_COUNTED_TIMERS_WAITING = 1_000_000

MINUTES = 60
# Timers that are counted; what is due behind them is estimated. Reading 10,000 by their index takes some 5 ms.
MAX_COUNTED_TIMERS = 10_000


@dataclass(frozen=True, slots=True)
class Ends:
    """Of what waits at a level or in the timers: since when the oldest does, and when the next is due, and the
    database's time now. None: nothing waits.
    """

    oldest_at: datetime | None
    next_due_at: datetime | None
    now: datetime

    @property
    def oldest_seconds(self) -> float | None:
        """How long the oldest has waited."""
        return None if self.oldest_at is None else (self.now - self.oldest_at).total_seconds()

    @property
    def next_due_seconds(self) -> float | None:
        """How long it is until the next is due; negative when that is over."""
        return None if self.next_due_at is None else (self.next_due_at - self.now).total_seconds()


@dataclass(frozen=True, slots=True)
class Level:
    """A delay level. One that the settings name no longer may still have a backlog; its `delay_seconds` is None."""

    level: int
    delay_seconds: int | None
    backlog: int
    oldest_at: datetime | None
    next_due_at: datetime | None


def backlogs() -> Sequence[Row]:
    """Per delay level that the schedule topic has a queue for: level, backlog, and its place, from `low` to `high`."""
    return sync.read(DELAY_BACKLOGS, {"scheduler": progress.SCHEDULER, "schedule_topic": topics.SCHEDULE})


def level_ends() -> dict[int, Ends]:
    """The ends of every delay level at which something waits."""
    return {
        row.queue_id + 1: Ends(row.entered_at, datetime.fromtimestamp(row.due_ms / 1000, UTC), row.now)
        for row in sync.read(DELAY_LEVEL_HEADS)
    }


def levels() -> list[Level]:
    """Every delay level of the settings, and any that was removed from them but still has messages."""
    waiting = {row.level: row.backlog for row in backlogs()}
    ends = level_ends()
    delays = dict(enumerate(settings.DELAY_LEVELS, start=1))
    known = sorted(delays.keys() | {level for level, backlog in waiting.items() if backlog})
    return [_level(level, delays.get(level), waiting.get(level, 0), ends.get(level)) for level in known]


def _level(level: int, delay_seconds: int | None, backlog: int, ends: Ends | None) -> Level:
    if ends is None:
        return Level(level, delay_seconds, backlog, None, None)
    return Level(level, delay_seconds, backlog, ends.oldest_at, ends.next_due_at)


def timers() -> int:
    """The timers that wait, counted to MAX_COUNTED."""
    return Timer.objects.order_by()[:MAX_COUNTED_TIMERS_WAITING].count()


def timer_ends() -> Ends:
    """The ends of what waits in the timers."""
    [row] = sync.read(LOOK_AT_TIMERS)
    return Ends(row.oldest_at, row.next_due_at, row.now)


def level_forecast() -> dict[int, list[int]]:
    """Per queue of the schedule topic that has a backlog: deliveries in each of the next MINUTES minutes, exactly."""
    found: dict[int, list[int]] = defaultdict(lambda: [0] * MINUTES)
    levels = [row for row in backlogs() if row.backlog]
    waiting = {name: [getattr(row, name) for row in levels] for name in ("queue_id", "topic_id", "low", "high")}
    for row in sync.read(FORECAST_LEVELS, {**waiting, "minutes": MINUTES}):
        found[row.queue_id][row.minute - 1] = row.deliveries
    return dict(found)


def timer_forecast() -> tuple[list[int], bool]:
    """Timers due in each of the next MINUTES minutes, and whether the later ones of them are estimated."""
    rows = sync.read(FORECAST_TIMERS, {"minutes": MINUTES, "max_counted": MAX_COUNTED_TIMERS})
    deliveries = [0] * MINUTES
    for row in rows:
        deliveries[row.minute - 1] = row.deliveries
    estimated = bool(rows) and rows[0].counted >= MAX_COUNTED_TIMERS
    if estimated:
        # The last minute that was counted was not counted to its end.
        for minute in range(rows[-1].minute, MINUTES + 1):
            deliveries[minute - 1] = max(_estimate(minute), deliveries[minute - 1])
    return deliveries, estimated


def _estimate(minute: int) -> int:
    [plan] = sync.read(ESTIMATE_TIMERS, {"minute": minute})
    return int(plan[0][0]["Plan"]["Plan Rows"])
