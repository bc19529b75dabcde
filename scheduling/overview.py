"""What waits for its time: each delay level with its backlog, and the timers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings

from scheduling.models import Timer
from scheduling.release import DELAY_LEVEL_HEADS
from store import blocking, readers, topics
from store.database import Row
from store.statements import Statement

DELAY_BACKLOGS = Statement(__file__, "delay_backlogs")

MAX_COUNTED = 1_000_000


@dataclass(frozen=True, slots=True)
class Level:
    """A delay level. One that the settings name no longer may still have a backlog; its `delay_seconds` is None."""

    level: int
    delay_seconds: int | None
    backlog: int
    next_due_at: datetime | None


def schedule() -> dict[str, object]:
    """What the statements about the levels' queues ask for."""
    return {"scheduler": readers.SCHEDULER, "schedule_topic": topics.SCHEDULE}


def backlogs() -> Sequence[Row]:
    """Per delay level that the schedule topic has a queue for: level and backlog."""
    return blocking.read(DELAY_BACKLOGS, schedule())


def levels() -> list[Level]:
    """Every delay level of the settings, and any that was removed from them but still has messages."""
    waiting = {row.level: row.backlog for row in backlogs()}
    heads = {
        row.queue_id + 1: datetime.fromtimestamp(row.due_ms / 1000, UTC) for row in blocking.read(DELAY_LEVEL_HEADS)
    }
    delays = dict(enumerate(settings.DELAY_LEVELS, start=1))
    known = sorted(delays.keys() | {level for level, backlog in waiting.items() if backlog})
    return [Level(level, delays.get(level), waiting.get(level, 0), heads.get(level)) for level in known]


def timers() -> int:
    """The timers that wait, counted to MAX_COUNTED."""
    return Timer.objects.order_by()[:MAX_COUNTED].count()


def next_timer() -> datetime | None:
    """When the next timer is due."""
    return Timer.objects.order_by("due_at", "id").values_list("due_at", flat=True).first()
