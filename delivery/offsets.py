"""Offsets: where a consumer group stands in a topic, and its reset to another place."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from delivery import groups, pull
from delivery.groups import GroupFacts, Position, locks_of
from delivery.rows import OffsetAtTime
from store import notifier, progress, topics
from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.db import connections
from store.db.connections import Row
from store.db.statements import Statement
from store.errors import MessageIllegal, QueueIllegal, Refusal
from store.topics import TopicFacts

DROP_RECEIPTS = Statement(__file__, "drop_receipts")
OFFSETS_AT_TIME = Statement(__file__, "offsets_at_time", OffsetAtTime)


class ResetOffsets(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Where a group is to stand: `earliest`, `latest`, a time, or an offset. A dry run only tells what it would do."""

    topic: str
    to: str | int
    queue_id: int | None = None
    dry_run: bool = False


@dataclass(slots=True)
class Look:
    """A question about a group's positions, or their reset."""

    group: GroupFacts
    topic: TopicFacts
    queue_ids: list[int]
    to: str | int | datetime | None = None
    dry_run: bool = True


async def positions(group_name: str, topic_name: str | None) -> dict[str, Any]:
    """Per queue of a topic, or of every topic that the group has begun to read: next_offset, min_offset, max_offset and
    lag. Offsets are dense, so nothing is counted.

    Raises GroupNotExist or TopicNotExist.
    """
    group = await groups.existing(group_name)
    if topic_name is None:
        return await _all_positions(group)
    topic = await topics.for_reading(topic_name)
    rows: list[dict[str, Any]] = await writer.submit(LOOKS, Look(group, topic, list(range(topic.queues))))
    results = [{"topic": topic.name, **row} for row in rows]
    return {"group": group.name, "results": results, "lag": sum(row["lag"] for row in rows)}


async def _all_positions(group: GroupFacts) -> dict[str, Any]:
    rows = await connections.read(progress.FIND_LAGS, {"reader_id": group.id, "max_queues": progress.MAX_QUEUES})
    names = ("topic", "queue_id", "next_offset", "min_offset", "max_offset", "lag")
    results = [{name: getattr(row, name) for name in names} for row in rows]
    return {"group": group.name, "results": results, "lag": sum(row.lag for row in rows)}


async def reset(group_name: str, request: ResetOffsets) -> dict[str, Any]:
    """Moves a group to another place of a topic, and drops its deliveries in flight there.

    Answers per queue {queue_id, from, to, replayed, skipped}, and totals. Raises GroupNotExist, TopicNotExist,
    QueueIllegal, MessageIllegal, or OffsetOutOfRange with both bounds.
    """
    group = await groups.existing(group_name)
    topic = await topics.for_reading(request.topic)
    queue_ids = list(range(topic.queues)) if request.queue_id is None else [request.queue_id]
    if not 0 <= queue_ids[0] < topic.queues:
        raise QueueIllegal(f"The topic {topic.name} has no queue {queue_ids[0]}: 0 to {topic.queues - 1}.")
    look = Look(group, topic, queue_ids, _target(request.to), request.dry_run)
    moves: list[dict[str, int]] = await writer.submit(LOOKS, look)
    if not request.dry_run:
        notifier.notify(Counter({topic.id: len(moves)}))
    return {
        "group": group.name,
        "topic": topic.name,
        "dry_run": request.dry_run,
        "results": moves,
        "replayed": sum(move["replayed"] for move in moves),
        "skipped": sum(move["skipped"] for move in moves),
    }


def _target(to: str | int) -> str | int | datetime:
    if isinstance(to, int) or to in ("earliest", "latest"):
        return to
    try:
        time = datetime.fromisoformat(to)
    except ValueError as problem:
        raise MessageIllegal(
            f"to {to[:60]!r} is no place: give earliest, latest, an offset, or a time such as 2026-01-31T12:00:00Z."
        ) from problem
    if time.tzinfo is None:
        raise MessageIllegal(f"to {to!r} names no time zone: give a time such as 2026-01-31T12:00:00Z.")
    return time


class Looks(Kind[Look]):
    """Looks and resets go one by one: each under the lock of the positions it concerns."""

    async def decide(self, batch: Batch, pending: list[Pending[Look]]) -> None:
        for one in pending:
            look = one.request
            queues = [(look.topic.id, queue_id) for queue_id in look.queue_ids]
            if not look.dry_run:
                await progress.take(batch, locks_of(look.group, look.topic, queues))
            rows = await progress.positions(batch, look.group.id, queues)
            one.outcome = _shown(rows, look.group) if look.to is None else await _reset(batch, look, rows)


LOOKS = Looks()


def _shown(rows: Sequence[Row], group: GroupFacts) -> list[dict[str, int]]:
    found = [(row, Position.of(row, group)) for row in rows]
    return [
        {
            "queue_id": row.queue_id,
            "next_offset": position.next_offset,
            "min_offset": row.min_offset,
            "max_offset": row.max_offset,
            "lag": position.lag,
        }
        for row, position in found
    ]


async def _reset(batch: Batch, look: Look, rows: Sequence[Row]) -> list[dict[str, int]] | Refusal:
    try:
        targets = await _targets(batch, look, rows)
    except Refusal as refusal:
        return refusal
    if not look.dry_run:
        await _begin_elsewhere(batch, look, rows)
        for row in rows:
            queue = (row.topic_id, row.queue_id)
            progress.move(batch, look.group.id, queue, (row.move or 0) + 1, targets[row.queue_id])
        await batch.read(
            DROP_RECEIPTS, {"group_id": look.group.id, "topic_id": look.topic.id, "queue_ids": look.queue_ids}
        )
    return [_move(row.queue_id, Position.of(row, look.group).next_offset, targets[row.queue_id]) for row in rows]


async def _begin_elsewhere(batch: Batch, look: Look, rows: Sequence[Row]) -> None:
    """Records where the group starts in the topic's other queues, if this reset is its first move in the topic.

    Without that they would count as queues that appeared later, which are read from their first entry.
    """
    if look.group.start_at == "latest" and not any(row.begun for row in rows):
        others = [(look.topic.id, queue) for queue in range(look.topic.queues) if queue not in look.queue_ids]
        for row in await progress.positions(batch, look.group.id, others):
            progress.move(batch, look.group.id, (row.topic_id, row.queue_id), 1, row.max_offset)


def _move(queue_id: int, start: int, target: int) -> dict[str, int]:
    return {
        "queue_id": queue_id,
        "from": start,
        "to": target,
        "replayed": max(start - target, 0),
        "skipped": max(target - start, 0),
    }


async def _targets(batch: Batch, look: Look, rows: Sequence[Row]) -> dict[int, int]:
    """The offset to go to in each queue.

    Raises OffsetOutOfRange for an offset that a queue does not hold.
    """
    if isinstance(look.to, datetime):
        asked = {
            "topic_id": look.topic.id,
            "time": look.to,
            "queue_id": [row.queue_id for row in rows],
            "low": [row.min_offset for row in rows],
            "high": [row.max_offset for row in rows],
        }
        return {row.queue_id: row.queue_offset for row in await batch.read(OFFSETS_AT_TIME, asked)}
    if isinstance(look.to, int):
        for row in rows:
            if not row.min_offset <= look.to <= row.max_offset:
                raise pull.out_of_range(look.topic.name, row.queue_id, look.to, row.min_offset, row.max_offset)
        return {row.queue_id: look.to for row in rows}
    return {row.queue_id: row.min_offset if look.to == "earliest" else row.max_offset for row in rows}
