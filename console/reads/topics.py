"""Topics with what their queues hold."""

from dataclasses import dataclass
from datetime import datetime

from console.reads import queues
from store.models import Topic
from store.topics import is_system

PAGE = 25
# A topic may have 1,024 queues; a page shows this many of them at once.
QUEUES = 64


@dataclass(frozen=True)
class Summary:
    """A topic as a row: what the queues that were looked at hold together."""

    topic: Topic
    entries: int
    last_stored_at: datetime | None
    partial: bool

    @property
    def is_system(self) -> bool:
        """Whether the topic is the broker's own."""
        return is_system(self.topic.name)


@dataclass(frozen=True)
class Page:
    """A page of topics by name, and the name the next page goes on behind (empty: there is none)."""

    topics: list[Summary]
    after: str

    @property
    def only_system(self) -> bool:
        """Whether nobody but the broker itself may write to any topic of this page."""
        return all(summary.is_system for summary in self.topics)


@dataclass(frozen=True)
class Lane:
    """A queue of a topic."""

    queue_id: int
    bounds: queues.Bounds


def page(after: str) -> Page:
    """Topics by name, from the first behind `after`."""
    found = list(Topic.objects.filter(name__gt=after).order_by("name")[: PAGE + 1])
    shown = found[:PAGE]
    looked_at = [(topic.id, queue) for topic in shown for queue in range(min(topic.queues, QUEUES))]
    reached = queues.bounds(looked_at)
    return Page([summary(topic, reached) for topic in shown], shown[-1].name if len(found) > PAGE else "")


def summary(topic: Topic, reached: dict[queues.Queue, queues.Bounds]) -> Summary:
    """A topic with the sums of its queues."""
    own = [reached[topic.id, queue] for queue in range(min(topic.queues, QUEUES))]
    stored = [bounds.last_stored_at for bounds in own if bounds.last_stored_at]
    return Summary(topic, sum(bounds.entries for bounds in own), max(stored, default=None), topic.queues > QUEUES)


def find(name: str) -> Topic | None:
    """The topic of this name."""
    return Topic.objects.filter(name=name).first()


def lanes(topic: Topic, first: int) -> list[Lane]:
    """The queues of a topic from `first` on."""
    ids = range(first, min(first + QUEUES, topic.queues))
    reached = queues.bounds((topic.id, queue) for queue in ids)
    return [Lane(queue, reached[topic.id, queue]) for queue in ids]
