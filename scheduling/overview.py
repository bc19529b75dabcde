"""What waits for its time: the backlog of each delay level, and the timers."""

from collections.abc import Sequence

from scheduling.models import Timer
from store import blocking, readers, topics
from store.database import Row
from store.statements import Statement

DELAY_BACKLOGS = Statement(__file__, "delay_backlogs")

MAX_COUNTED = 1_000_000


def backlogs() -> Sequence[Row]:
    """Per delay level that the schedule topic has a queue for: level and backlog."""
    return blocking.read(DELAY_BACKLOGS, {"scheduler": readers.SCHEDULER, "schedule_topic": topics.SCHEDULE})


def timers() -> int:
    """The timers that wait, counted to MAX_COUNTED."""
    return Timer.objects.order_by()[:MAX_COUNTED].count()
