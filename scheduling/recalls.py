"""Recall: takes a delayed message back, exactly: it is either recalled or delivered, and the caller is told which."""

import base64
import uuid
from typing import Any

import msgspec

from scheduling.errors import AlreadyDelivered
from scheduling.publish import Publication
from store import groupcommit, log, readers, topics
from store.batch import Batch, Kind, Pending
from store.database import Row
from store.errors import MessageIllegal
from store.statements import Statement

DELETE_TIMER = Statement(__file__, "delete_timer")
FIND_WAITING = Statement(__file__, "find_waiting")
INSERT_RECALL = Statement(__file__, "insert_recall")


class Handle(msgspec.Struct, array_like=True, frozen=True):
    """Where a delayed message waits: a timer by its id, or an offset of a level's queue."""

    message_id: str
    timer_id: str | None = None
    level_queue: int | None = None
    level_offset: int | None = None


def handle_of(publication: Publication) -> str:
    """The handle of a delayed message; opaque to clients."""
    entry = publication.entry
    return handle(
        publication.message_id,
        publication.timer_id,
        entry.queue_id if entry else None,
        entry.queue_offset if entry else None,
    )


def handle(
    message_id: uuid.UUID | None, timer_id: uuid.UUID | None, level_queue: int | None, level_offset: int | None
) -> str:
    """The handle of a message that waits in a timer, or at an offset of a level's queue."""
    handle = Handle(
        message_id=str(message_id),
        timer_id=str(timer_id) if timer_id else None,
        level_queue=level_queue,
        level_offset=level_offset,
    )
    return base64.urlsafe_b64encode(msgspec.json.encode(handle)).decode().rstrip("=")


async def waiting(batch: Batch, log_offsets: list[int]) -> dict[int, Row]:
    """Where the messages at these log offsets wait for their time: due_at, and what their handles are made of."""
    rows = await batch.read(FIND_WAITING, {"log_offsets": log_offsets}) if log_offsets else ()
    return {row.log_offset: row for row in rows}


async def recall(given: str) -> dict[str, Any]:
    """Takes a delayed message back before it becomes visible; the same again is answered the same.

    Raises AlreadyDelivered when it became visible before, MessageIllegal for what is no handle.
    """
    handle = _read(given)
    answer: dict[str, Any] = await groupcommit.submit(RECALLS, handle, key=handle.message_id, urgent=True)
    return answer


def _read(given: str) -> Handle:
    try:
        packed = base64.urlsafe_b64decode(given + "=" * (-len(given) % 4))
        handle = msgspec.json.decode(packed, type=Handle)
        uuid.UUID(handle.message_id), uuid.UUID(handle.timer_id or handle.message_id)
    except (ValueError, msgspec.DecodeError) as problem:
        raise MessageIllegal(
            f"recall_handle {given[:60]!r} is none: give the one that the send of the delayed message answered."
        ) from problem
    return handle


class Recalls(Kind[Handle]):
    """A timer is recalled by its delete, a level's entry by a note that the release looks for under the same lock."""

    async def decide(self, batch: Batch, pending: list[Pending[Handle]]) -> None:
        await _lock_levels(batch, [one.request for one in pending])
        for one in pending:
            handle = one.request
            taken = await _take_timer(batch, handle) if handle.timer_id is not None else await _note(batch, handle)
            if taken or not await _delivered(batch, handle):
                one.outcome = {"message_id": handle.message_id, "state": "RECALLED"}
            else:
                one.outcome = AlreadyDelivered(
                    f"Message {handle.message_id} was delivered before it was recalled: its consumers have it."
                )


RECALLS = Recalls()


async def _lock_levels(batch: Batch, handles: list[Handle]) -> None:
    level_queues = sorted({handle.level_queue for handle in handles if handle.level_queue is not None})
    if level_queues:
        schedule = await topics.own(topics.SCHEDULE, queues=1)
        await readers.lock(batch, readers.SCHEDULER, [(schedule.id, queue) for queue in level_queues])


async def _take_timer(batch: Batch, handle: Handle) -> bool:
    rows = await batch.read(DELETE_TIMER, {"id": handle.timer_id, "message_id": handle.message_id})
    return bool(rows)


async def _note(batch: Batch, handle: Handle) -> bool:
    """Whether the entry still waits, and is now noted as recalled."""
    schedule = await topics.own(topics.SCHEDULE, queues=1)
    assert handle.level_queue is not None
    assert handle.level_offset is not None
    position = (await readers.positions(batch, readers.SCHEDULER, [(schedule.id, handle.level_queue)]))[0]
    if not max(position.next_offset or 0, position.min_offset) <= handle.level_offset < position.max_offset:
        return False
    await batch.read(INSERT_RECALL, {"queue_id": handle.level_queue, "queue_offset": handle.level_offset})
    return True


async def _delivered(batch: Batch, handle: Handle) -> bool:
    """Whether the message is in its topic: what waits no longer and is not there was recalled before."""
    message_id = uuid.UUID(handle.message_id)
    row = (await log.find(batch.connection, [message_id])).get(message_id)
    return row is None or row.queue_offset is not None
