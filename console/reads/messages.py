"""Stored messages, read from the commit log by their places in it."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from console.reads import bodies, names
from store.models import CommitLog

# A place in the commit log: segment and log offset.
Place = tuple[int, int]


@dataclass(frozen=True)
class Message:
    """A stored message with the beginning of its body."""

    message_id: UUID
    topic: str
    queue_id: int
    log_offset: int
    stored_at: datetime
    born_at: datetime | None
    tags: str | None
    keys: list[str]
    sharding_key: str | None
    traceparent: str | None
    body: bodies.Preview
    properties: dict[str, str] = field(default_factory=dict)


def at(places: Iterable[Place]) -> dict[Place, Message]:
    """The messages at these places; one whose segment was dropped is missing."""
    rows = list(stored(places).annotate(first=bodies.FIRST_BYTES, size=bodies.SIZE).defer("body"))
    topics = names.of_topics(row.topic_id for row in rows)
    return {(row.segment_id, row.log_offset): message(row, topics.get(row.topic_id, str(row.topic_id))) for row in rows}


def heads(places: Iterable[Place]) -> dict[Place, CommitLog]:
    """The messages at these places without body and properties, for a list of many."""
    return {(row.segment_id, row.log_offset): row for row in stored(places).defer("body", "properties")}


def stored(places: Iterable[Place]) -> QuerySet[CommitLog]:
    """Rows of the commit log, segment by segment: each finds its partition and its index."""
    offsets = defaultdict(list)
    for segment, offset in places:
        offsets[segment].append(offset)
    if not offsets:
        return CommitLog.objects.none()
    of_segments = [Q(segment_id=segment, log_offset__in=inside) for segment, inside in offsets.items()]
    return CommitLog.objects.filter(Q(*of_segments, _connector=Q.OR))


def message(row: CommitLog, topic: str) -> Message:
    """A row of the log, annotated with the first bytes and the size of its body, as a page shows it."""
    return Message(
        message_id=row.message_id,
        topic=topic,
        queue_id=row.queue_id,
        log_offset=row.log_offset,
        stored_at=row.stored_at,
        born_at=row.born_at,
        tags=row.tags,
        keys=row.keys or [],
        sharding_key=row.sharding_key,
        traceparent=row.traceparent,
        body=bodies.preview(bytes(row.first), row.size),  # type: ignore[attr-defined]  # annotated by `at`
        properties=json.loads(bytes(row.properties)) if row.properties else {},
    )
