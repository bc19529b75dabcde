"""What waits for its time: the backlog of each delay level, and the timers."""

from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings

from console.reads import consumers, queues
from console.reads.counts import Count, up_to
from scheduling.models import Timer
from store.models import ConsumeQueue, Topic
from store.progress import SCHEDULER
from store.topics import SCHEDULE


@dataclass(frozen=True)
class Level:
    """A delay level: what waits in it, and when the first of it is due (None: nothing waits)."""

    level: int
    delay_seconds: int | None
    backlog: int
    next_due_at: datetime | None


@dataclass(frozen=True)
class Timers:
    """How many timers wait, and when the first of them is due."""

    count: Count
    next_due_at: datetime | None


def levels() -> list[Level]:
    """Every delay level; one that the settings no longer name but that still holds messages has no delay."""
    topic = Topic.objects.get(name=SCHEDULE)
    count = max(topic.queues, len(settings.DELAY_LEVELS))
    moves = consumers.last_moves(SCHEDULER)
    released = {queue: move.next_offset for (of, queue), move in moves.items() if of == topic.id}
    reached = queues.bounds((topic.id, queue) for queue in range(count))
    all_levels = [level(topic, queue, reached[topic.id, queue], released.get(queue, 0)) for queue in range(count)]
    return [one for one in all_levels if one.delay_seconds is not None or one.backlog]


def level(topic: Topic, queue: int, bounds: queues.Bounds, released: int) -> Level:
    """Level n is queue n−1 of the schedule topic."""
    next_offset = max(released, bounds.min_offset)
    backlog = bounds.max_offset - next_offset
    delay = settings.DELAY_LEVELS[queue] if queue < len(settings.DELAY_LEVELS) else None
    return Level(queue + 1, delay, backlog, due_at(topic, queue, next_offset) if backlog else None)


def due_at(topic: Topic, queue: int, offset: int) -> datetime | None:
    """When an entry of a schedule queue is due: its tag code is the time in ms."""
    entry = ConsumeQueue.objects.filter(topic_id=topic.id, queue_id=queue, queue_offset=offset).first()
    return datetime.fromtimestamp(entry.tags_code / 1000, UTC) if entry else None


def timers() -> Timers:
    """The timers that wait."""
    return Timers(
        up_to(Timer.objects.all()), Timer.objects.order_by("due_at", "id").values_list("due_at", flat=True).first()
    )


def waiting() -> Count:
    """Messages that wait for a delay level or a timer."""
    of_timers = timers().count
    return Count(of_timers.rows + sum(level.backlog for level in levels()), of_timers.more)
