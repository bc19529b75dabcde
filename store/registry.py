"""Topics as an operator keeps them: created, grown, changed, listed and deleted."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models import Model, Q, QuerySet

from store import stats
from store.cells import cells, copies
from store.db import fields
from store.errors import QueueIllegal, TopicForbidden
from store.models import Cell, QueueFloor, Topic
from store.naming import namespaces, topics
from store.notices import caches
from store.process.runtime import CONTROL
from store.queues import QueueBounds, of_topic

Row = TypeVar("Row", bound=Model)
Columns = Mapping[str, Any]
MAX_QUEUES = 1024
MAX_RESERVED_HOURS = 10 * 366 * 24
PERMISSIONS = ("rw", "r", "w")
FIELDS = fields.of(
    Topic,
    fields.Whole(
        "queues",
        "Queues",
        help="The number only grows. After an increase, sharding keys go to other queues",
        default="the broker's DEFAULT_QUEUES",
        least=1,
        most=MAX_QUEUES,
        own_refusal=True,
    ),
    fields.Whole(
        "reserved_hours",
        "Hours kept",
        help="How long its messages are kept",
        unset=f"the broker's RESERVED_HOURS, {settings.RESERVED_HOURS}",
        least=1,
        most=MAX_RESERVED_HOURS,
    ),
    fields.Choice(
        "permission",
        "Permission",
        help="r: it is read only; w: it takes messages only; rw: both",
        component="Permission",
        choices=PERMISSIONS,
    ),
    fields.Time(
        "sends_from",
        "Sends from",
        help="Before this time sends and half messages are refused; ends, receives and earlier messages continue",
        unset="at once",
    ),
)


def page(after: str, count: int, matching: str = "", namespace: str | None = None) -> Sequence[Topic]:
    """Topics by name: the first `count` after `after` whose names contain `matching`, upper or lower case."""
    return by_name(Topic.objects.filter(namespaces.within(namespace)), after, count, matching)


def page_of_users(after: str, count: int, matching: str = "", namespace: str | None = None) -> Sequence[Topic]:
    """The page that `page` returns, without the broker's own topics."""
    return by_name(of_users().filter(namespaces.within(namespace)), after, count, matching)


def of_users() -> QuerySet[Topic]:
    """All topics except the broker's own."""
    rows = Topic.objects.exclude(name__in=topics.SYSTEM)
    for prefix in (topics.RETRY_PREFIX, topics.DEAD_LETTER_PREFIX):
        rows = rows.exclude(name__startswith=prefix)
    return rows


def page_of_broker(after: str, count: int, matching: str = "", namespace: str | None = None) -> Sequence[Topic]:
    """The page of the broker's own topics: retry topics, dead-letter topics, and the fixed ones."""
    own = Q(name__in=topics.SYSTEM) | Q(name__startswith=topics.RETRY_PREFIX)
    own |= Q(name__startswith=topics.DEAD_LETTER_PREFIX)
    return by_name(Topic.objects.filter(own, namespaces.within(namespace)), after, count, matching)


def by_name(rows: QuerySet[Row], after: str, count: int, matching: str) -> list[Row]:
    """The first `count` of these rows by name after `after` whose names contain `matching`, upper or lower case."""
    return list(rows.filter(name__gt=after, name__icontains=matching).order_by("name")[:count])


def find(name: str) -> Topic:
    """The topic of this name. Raises TopicIllegal or TopicNotExist."""
    topics.validate_name(name)
    topic = named(name)
    if topic is None:
        raise topics.absent(name)
    return topic


def named(name: str) -> Topic | None:
    """The topic of this name, or None."""
    return Topic.objects.filter(name=name).first()


def bounds(topic: Topic) -> Sequence[QueueBounds]:
    """The first and the next offset of each queue of the topic. `max_offset` is the next offset to be written.

    For a topic of the broker's own, of which each cell has queues: the bounds in the cell that the work has entered.
    Raises CellAway.
    """
    queues = list(of_topic(topic.id, topic.queues))
    if topics.is_system(topic.name):
        return stats.bounds(queues)
    return cells.at(topic.cell_id, lambda: stats.bounds(queues))


def put(name: str, changes: Mapping[str, Any]) -> tuple[Topic, bool]:
    """Creates the topic, or changes only the given fields (of FIELDS). Returns the topic and whether it is new.

    At the return every process uses the change. Raises TopicIllegal, TopicForbidden for the broker's own topics, or
    QueueIllegal for fewer queues than before or more than MAX_QUEUES.
    """
    topics.validate_name(name)
    _refuse_own(name)
    queues = changes.get("queues")
    if queues is not None and not 1 <= queues <= MAX_QUEUES:
        raise QueueIllegal(f"queues {queues} is not between 1 and {MAX_QUEUES}.")
    with transaction.atomic():
        if named(name) is None:
            namespaces.hold_room(name)
        return put_row(
            Topic, name, changes, {"queues": settings.DEFAULT_QUEUES, "cell_id": _open_cell}, _require_as_many_queues
        )


def put_row(
    model: type[Row],
    name: str,
    changes: Columns,
    defaults: Columns,
    require: Callable[[Row, Columns], None] | None = None,
) -> tuple[Row, bool]:
    """Creates the row of a name, or changes it unless `require` raises. Returns the row and whether it is new.

    At the return every process uses the change.
    """
    with transaction.atomic():
        rows = model._default_manager.select_for_update()
        row, created = rows.get_or_create(name=name, defaults={**defaults, **changes})
        if not created:
            if require is not None:
                require(row, changes)
            for column, value in changes.items():
                setattr(row, column, value)
            row.save(update_fields=list(changes))
            caches.drop_everywhere()
        copies.write(model, [row.pk])
    return row, created


def _open_cell() -> int:
    return Cell.objects.values_list("id", flat=True).filter(takes_topics=True).first() or CONTROL


def _refuse_own(name: str) -> None:
    if topics.is_system(name):
        raise TopicForbidden(f"The topic {name} belongs to the broker: it can be read, but not changed.")


def _require_as_many_queues(topic: Topic, changes: Mapping[str, Any]) -> None:
    if changes.get("queues", topic.queues) < topic.queues:
        raise QueueIllegal(
            f"The topic {topic.name} has {topic.queues} queues and cannot have fewer: give {topic.queues} or more."
        )


def remove(topic: Topic) -> None:
    """Deletes a topic. Its messages can no longer be read, and retention drops them.

    A topic that is created later under the same name is a new topic and begins at offset 0; its consumers get no
    messages of the deleted topic, not even messages that are stored during the delete. Raises TopicForbidden for the
    broker's own topics.
    """
    _refuse_own(topic.name)
    with copies.change():
        remove_own(topic.name)
        caches.drop_everywhere()


def remove_own(name: str) -> None:
    """Deletes a topic if it exists, for example a topic of the broker's own when its group is deleted."""
    with copies.change():
        topic = named(name)
        if topic is not None:
            topic_id = topic.id
            cells.each(lambda: QueueFloor.objects.filter(topic_id=topic_id).delete())
            topic.delete()
            copies.write(Topic, [topic_id])
