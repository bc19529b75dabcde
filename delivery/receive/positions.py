"""Positions: the progress of a consumer group in the queues of its topics."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from delivery import groups
from delivery.groups import QueueProgress
from delivery.receive.turns import COUNT_WAITING, Waiting
from delivery.rows import GroupFacts
from store.db import connections
from store.db.statements import Statement
from store.naming import topics
from store.naming.topics import TopicFacts
from store.process import runtime
from store.queues import Queue
from store.reading import holders, progress
from store.rows import Lag, PositionRow

# The lag in topics that were deleted and created again after the group had read them.
FIND_LAGS_ANEW = Statement(__file__, "find_lags_anew", Lag)

# Reads rows in a cell, or in every cell.
Read = Callable[[Statement[Waiting], dict[str, Any]], Awaitable[Sequence[Waiting]]]


class QueuePosition(msgspec.Struct):
    """A group's position in a queue. `max_offset`: the offset of the next entry. `lag`: entries not handed out yet."""

    topic: str
    queue_id: int
    next_offset: int
    min_offset: int
    max_offset: int
    lag: int


class Offsets(msgspec.Struct):
    """A group's positions, in one topic or in all topics that it reads."""

    group: str
    results: list[QueuePosition]
    lag: int


async def of(group_name: str, topic_name: str | None, shows: Callable[[str], bool], cell: str | None = None) -> Offsets:
    """A group's position in each queue of a topic, or of all topics that the group has begun to read and `shows`
    accepts.

    The lag is a difference of offsets, which are dense; only entries that are read ahead or parked are counted one by
    one. Raises GroupNotExist or TopicNotExist.
    """
    group = await groups.existing(group_name)
    if topic_name is None:
        found = [queue for queue in await _in_all_topics(group) if shows(queue.topic)]
    else:
        found = await _in_topic(group, topic_name, cell)
    return Offsets(group.name, found, sum(queue.lag for queue in found))


async def _in_topic(group: GroupFacts, topic_name: str, cell: str | None) -> list[QueuePosition]:
    topic = await topics.for_reading(topic_name)
    with runtime.in_cell(holders.of_queues(topic, cell)):
        rows = await of_queues(group, topic, range(topic.queues))
        ahead = await _read_ahead(connections.read, group)
    reached = [QueueProgress.of(row, group) for row in rows]
    return [
        QueuePosition(
            topic.name,
            row.queue_id,
            at.next_offset,
            row.min_offset,
            row.max_offset,
            at.lag + ahead[topic.id, row.queue_id],
        )
        for row, at in zip(rows, reached, strict=True)
    ]


async def _in_all_topics(group: GroupFacts) -> list[QueuePosition]:
    limits = {"reader_ids": [group.id], "max_queues": progress.MAX_QUEUES}
    rows = [
        *await connections.read_everywhere(progress.FIND_LAGS, limits),
        *await connections.read_everywhere(FIND_LAGS_ANEW, limits),
    ]
    ahead = await _read_ahead(connections.read_everywhere, group)
    return [
        QueuePosition(
            *(row.topic, row.queue_id, row.next_offset, row.min_offset, row.max_offset),
            row.lag + ahead[row.topic_id, row.queue_id],
        )
        for row in rows
    ]


async def _read_ahead(read: Read, group: GroupFacts) -> Counter[Queue]:
    """The number of entries, by queue, that a fair or limited group has read ahead or an ordered group has parked."""
    reads_ahead = group.ordered or group.fair_by is not None or group.limits is not None
    rows = await read(COUNT_WAITING, {"group_ids": [group.id]}) if reads_ahead else ()
    return sum((Counter({(row.topic_id, row.queue_id): row.waiting}) for row in rows), Counter())


async def of_queues(group: GroupFacts, topic: TopicFacts, queue_ids: Sequence[int]) -> Sequence[PositionRow]:
    """The group's progress as of now, without the locks that a move needs."""
    return await connections.read(
        progress.FIND_POSITIONS,
        {"reader_id": group.id, "topic_id": [topic.id] * len(queue_ids), "queue_id": list(queue_ids)},
    )
