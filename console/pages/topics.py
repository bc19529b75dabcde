"""Pages of topics, their queues, and what waits for its time."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.pages import frame
from console.reads import clock, delays, queues, topics
from store.topics import is_system


@require_GET
def all_topics(request: HttpRequest) -> HttpResponse:
    """Topics by name."""
    page = topics.page(request.GET.get("after", ""))
    return frame.show(request, "console/topics.html", "Topics", now=clock.now(), page=page)


@require_GET
def one(request: HttpRequest, name: str) -> HttpResponse:
    """One topic: its queues, and the newest entries of one of them."""
    topic = topics.find(name)
    if topic is None:
        return frame.not_there(request, f"Topic {name} does not exist.", "topics")
    queue_id = min(frame.whole_number(request, "queue"), topic.queues - 1)
    first = queue_id // topics.QUEUES * topics.QUEUES
    below = frame.whole_number(request, "below") or None
    entries = queues.newest(topic.id, queue_id, below)
    return frame.show(
        request,
        "console/topic.html",
        f"Topic {name}",
        now=clock.now(),
        topic=topic,
        is_system=is_system(name),
        lanes=topics.lanes(topic, first),
        next_lanes=first + topics.QUEUES if first + topics.QUEUES < topic.queues else None,
        previous_lanes=first - topics.QUEUES if first else None,
        queue_id=queue_id,
        entries=entries,
        below=below,
        entries_limit=queues.ENTRIES,
        older=entries[-1].queue_offset if len(entries) == queues.ENTRIES and entries[-1].queue_offset else None,
    )


@require_GET
def delayed(request: HttpRequest) -> HttpResponse:
    """The delay levels and the timers."""
    return frame.show(
        request, "console/delays.html", "Delays", now=clock.now(), levels=delays.levels(), timers=delays.timers()
    )
