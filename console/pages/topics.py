"""Pages of topics, their queues, and delayed messages."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.monitoring.counts import Count
from console.pages import frame
from scheduling import lateness
from scheduling import stats as scheduling_stats
from store import registry, stats
from store.cells import cells
from store.messages import counted
from store.models import Topic
from store.naming.topics import is_system
from store.reading import previews
from transactions.operations import totals

PAGE = 25
# A topic may have 1,024 queues; a page shows this many of them at once. 64 took 28 ms over 8 segments.
QUEUES = 64
ENTRIES = 50
# The most timers on the page of delayed messages: the timers that are due first.
TIMERS = 20


@require_GET
def all_topics(request: HttpRequest) -> HttpResponse:
    """Topics by name: users' topics first; the broker's own topics are folded away or on a separate page."""
    of_broker = request.GET.get("own") == "1"
    page_of = registry.page_of_broker if of_broker else registry.page_of_users
    rows, shown = frame.by_name(request, page_of, PAGE)
    return frame.show(
        request,
        "console/topics.html",
        "The broker's own topics" if of_broker else "Topics",
        rows=stats.held_by(rows, QUEUES),
        of_broker=of_broker,
        carried={"own": "1"} if of_broker else {},
        **shown,
    )


@require_GET
def one(request: HttpRequest, name: str) -> HttpResponse:
    """The page of one topic: its queues, and the newest entries of one of them."""
    topic = registry.named(name)
    if topic is None:
        return frame.not_there(request, f"Topic {name} does not exist.", "topics")
    queue_id = min(frame.whole_number(request, "queue"), topic.queues - 1)
    return frame.show(
        request,
        "console/topic.html",
        f"Topic {name}",
        now=stats.now(),
        topic=topic,
        is_system=is_system(name),
        queue_id=queue_id,
        ends=totals.of_topic(name),
        **cells.at(topic.cell_id, lambda: queues(topic, queue_id)),
        **cells.at(topic.cell_id, lambda: entries(topic, queue_id, frame.whole_number(request, "below") or None)),
    )


def queues(topic: Topic, queue_id: int) -> dict[str, object]:
    """QUEUES queues of a topic around this queue, and the first queue numbers of the previous and next group."""
    first = queue_id // QUEUES * QUEUES
    beyond = min(first + QUEUES, topic.queues)
    return {
        "queues": stats.bounds((topic.id, queue) for queue in range(first, beyond)),
        "next_queues": beyond if beyond < topic.queues else None,
        "previous_queues": first - QUEUES if first else None,
    }


def entries(topic: Topic, queue_id: int, below: int | None) -> dict[str, object]:
    """The newest entries of a queue, with `below` only entries below this offset, and the offset for older ones."""
    found = previews.newest(topic.id, queue_id, below, ENTRIES)
    return {
        "entries": found,
        "counts": "Retries" if counted.of(topic.name, 0).check_times is None else "Checks",
        "entries_limit": ENTRIES,
        "below": below,
        "older": found[-1].queue_offset if len(found) == ENTRIES and found[-1].queue_offset else None,
    }


@require_GET
def delayed(request: HttpRequest) -> HttpResponse:
    """The delay levels with their next release and their lateness, and the timers that are due first."""
    timers = scheduling_stats.timers()
    late = lateness.of_last_hour()
    coming = scheduling_stats.level_forecast()
    return frame.show(
        request,
        "console/delays.html",
        "Delays",
        now=stats.now(),
        levels=[(level, coming.get(level.level, [0]), late.get(level.level)) for level in scheduling_stats.levels()],
        timers=Count(timers, timers >= scheduling_stats.MAX_TIMERS),
        timers_late=late.get(None),
        next_timers=scheduling_stats.next_timers(TIMERS),
    )
