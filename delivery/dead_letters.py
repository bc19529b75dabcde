"""Dead letters: messages that a group gave up after all its retries, until somebody redrives them."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from django.conf import settings

from delivery import groups
from delivery.groups import GroupFacts
from delivery.receive import deliveries
from delivery.rows import DeadLetterPlace, DeadLetterRow
from scheduling.publish import Publication, publish
from store import messages, progress, queues, topics
from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.db import connections
from store.db.connections import Row
from store.db.statements import Statement
from store.errors import MessageIllegal, MessageNotFound, Refusal
from store.topics import TopicFacts

FIND_DEAD_LETTERS = Statement(__file__, "find_dead_letters", DeadLetterPlace)
INSERT_REDRIVES = Statement(__file__, "insert_redrives")
NEXT_DEAD_LETTERS = Statement(__file__, "next_dead_letters", DeadLetterPlace)
READ_DEAD_LETTERS = Statement(__file__, "read_dead_letters", DeadLetterRow)

MAX_LISTED = 200
MAX_REDRIVEN = 1000


class RedriveDeadLetters(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters to send again, and where: to the group's own readers of the origin, or to another topic."""

    message_ids: list[uuid.UUID] | None = None
    all: bool = False
    to_topic: str | None = None


@dataclass(slots=True)
class Redrive:
    """Dead letters of a group to be sent again; without `message_ids` the oldest MAX_REDRIVEN within the offsets."""

    group: GroupFacts
    dead_letters: TopicFacts
    message_ids: list[uuid.UUID] | None
    to_topic: TopicFacts | None
    from_offset: int = 0
    until_offset: int = 0


@dataclass(frozen=True, slots=True)
class Redriven:
    """What became of dead letters, and the offset behind the last of them."""

    results: Sequence[dict[str, Any] | Refusal]
    next_offset: int


async def listed(group_name: str, after_offset: int, limit: int) -> dict[str, Any]:
    """A group's dead letters that were not redriven, the oldest first; `next` continues the list.

    `limit` of them, or as many as their bodies fit into MAX_RECEIVE_BYTES. Raises GroupNotExist or MessageIllegal.
    """
    group = await groups.existing(group_name)
    if not 1 <= limit <= MAX_LISTED:
        raise MessageIllegal(f"limit {limit} is not between 1 and {MAX_LISTED}.")
    topic = await groups.dead_letter_topic(group.name)
    asked = {"group_id": group.id, "topic_id": topic.id, "from_offset": after_offset, "max_entries": limit}
    rows = await connections.read(READ_DEAD_LETTERS, {**asked, "max_bytes": settings.MAX_RECEIVE_BYTES})
    names = await topics.names({row.topic_id for row in rows})
    ends = not rows or len(rows) == rows[0].letters < limit
    return {
        "results": [_shown(row, names[row.topic_id]) for row in rows],
        "next": None if ends else rows[-1].queue_offset + 1,
    }


def _shown(row: Row, topic_name: str) -> dict[str, Any]:
    message = messages.given_out(row, topic_name)
    message["reconsume_times"] = row.reconsume_times
    deliveries.tell_retries(message, topic_name, row.reconsume_times)
    return {"message": message, "queue_offset": row.queue_offset, "dead_at": row.entered_at}


async def redrive(group_name: str, request: RedriveDeadLetters) -> list[dict[str, Any] | Refusal]:
    """Sends dead letters again, each once. In the order given (or the oldest first): what became of each.

    A redriven message starts with no retries behind it. To its origin it goes through the group's own retry queue, so
    that no other group of the topic gets it again. Raises GroupNotExist, MessageIllegal, or what forbids `to_topic`.
    """
    group = await groups.existing(group_name)
    if (request.message_ids is None) == (not request.all):
        raise MessageIllegal('Give either message_ids or "all": true.')
    if request.message_ids is not None and not 1 <= len(request.message_ids) <= MAX_REDRIVEN:
        raise MessageIllegal(f"message_ids has {len(request.message_ids)} ids: give 1 to {MAX_REDRIVEN}.")
    to_topic = await topics.for_sending(request.to_topic) if request.to_topic is not None else None
    dead_letters = await groups.dead_letter_topic(group.name)
    wish = Redrive(group, dead_letters, request.message_ids, to_topic)
    if request.message_ids is not None:
        redriven: Redriven = await writer.submit(REDRIVES, wish)
        return list(redriven.results)
    return await _redrive_all(wish)


async def _redrive_all(wish: Redrive) -> list[dict[str, Any] | Refusal]:
    """In several transactions; not those that fail again and die meanwhile."""
    [bounds] = await queues.bounds(wish.dead_letters.id, 1)
    results: list[dict[str, Any] | Refusal] = []
    while wish.from_offset < bounds.max_offset:
        redriven: Redriven = await writer.submit(REDRIVES, replace(wish, until_offset=bounds.max_offset))
        results += redriven.results
        wish = replace(wish, from_offset=redriven.next_offset)
    return results


class Redrives(Kind[Redrive]):
    """A redrive publishes each letter and notes it as redriven, under the lock of the group's dead letters."""

    async def decide(self, batch: Batch, pending: list[Pending[Redrive]]) -> None:
        for one in pending:
            wish = one.request
            await progress.lock(batch, wish.group.id, [(wish.dead_letters.id, 0)])
            rows = await self._letters(batch, wish)
            sent = {row.message_id: await self._send(batch, wish, row) for row in rows}
            asked = list(sent) if wish.message_ids is None else wish.message_ids
            results = [sent.get(message_id) or _unknown(wish, message_id) for message_id in asked]
            full = wish.message_ids is None and len(rows) == MAX_REDRIVEN
            one.outcome = Redriven(results, rows[-1].queue_offset + 1 if full else wish.until_offset)

    async def _letters(self, batch: Batch, wish: Redrive) -> list[Row]:
        asked = {"group_id": wish.group.id, "topic_id": wish.dead_letters.id}
        if wish.message_ids is None:
            page = {"from_offset": wish.from_offset, "until_offset": wish.until_offset, "max_entries": MAX_REDRIVEN}
            return list(await batch.read(NEXT_DEAD_LETTERS, {**asked, **page}))
        rows = await batch.read(FIND_DEAD_LETTERS, {**asked, "message_ids": wish.message_ids})
        # Dead twice, redriven once: the newest letter stands for the message.
        return list({row.message_id: row for row in rows}.values())

    async def _send(self, batch: Batch, wish: Redrive, row: Row) -> dict[str, Any]:
        topic, queue_id = await self._place(wish, row)
        await publish(
            batch,
            Publication(
                message_id=row.message_id,
                topic_id=topic.id,
                queue_id=queue_id,
                log_segment=row.segment_id,
                log_offset=row.log_offset,
                tags_code=row.tags_code,
            ),
        )
        batch.insert(INSERT_REDRIVES, {"group_id": wish.group.id, "queue_offset": row.queue_offset})
        return {"message_id": row.message_id, "status": 200, "topic": topic.name}

    async def _place(self, wish: Redrive, row: Row) -> tuple[TopicFacts, int]:
        if wish.to_topic is not None:
            return wish.to_topic, row.queue_id % wish.to_topic.queues
        queue_id = await groups.retry_queue_of(wish.group.id, wish.group.name, row.topic_id)
        return await groups.retry_topic(wish.group.name), queue_id


REDRIVES = Redrives()


def _unknown(wish: Redrive, message_id: uuid.UUID) -> MessageNotFound:
    return MessageNotFound(
        f"Message {message_id} is no dead letter of {wish.group.name}: it never was one, or it was redriven before.",
        message_id=message_id,
    )
