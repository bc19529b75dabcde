"""Recall: takes a delayed message back before its release. The answer is exact: recalled, or already delivered."""

import base64
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal, Protocol, Self
from uuid import UUID

import msgspec
from msgspec import Meta, UnsetType

from scheduling.publish import Publication
from scheduling.rows import Fate, Standing
from store.commit import writer
from store.commit.batch import Batch
from store.commit.operation import Note, Operation
from store.db import connections, sync
from store.db.statements import Statement
from store.errors import MessageIllegal, Refusal
from store.messages.times import exact
from store.naming import topics
from store.reading import holders, lookup, progress

DELETE_TIMER = Statement(__file__, "delete_timer", one=UUID)
FIND_FATE = Statement(__file__, "find_fate", Fate)
FIND_STANDINGS = Statement(__file__, "find_standings", Standing)
INSERT_RECALL = Statement(__file__, "insert_recall", one=int)


class AlreadyDelivered(Refusal):
    """The delayed message was delivered before it was recalled."""

    code = "already_delivered"


class Handle(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The content of a recall handle: where a message waits, as the id of a timer or an offset of a level's queue."""

    message_id: uuid.UUID
    timer_id: uuid.UUID | None = None
    level_queue: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    level_offset: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None

    @property
    def names_one_wait(self) -> bool:
        """Whether the handle names either a timer or an offset of a level's queue, as a handle of the broker always
        does.
        """
        at_level = (self.level_queue is not None, self.level_offset is not None)
        return at_level == ((False, False) if self.timer_id is not None else (True, True))


class Recalled(msgspec.Struct):
    """A delayed message that was recalled and never becomes visible."""

    message_id: uuid.UUID
    state: Literal["RECALLED"]


def handle_of(publication: Publication) -> str:
    """The handle of a delayed message that was just published; opaque to clients."""
    entry = publication.entry
    assert publication.message_id is not None
    return handle(
        publication.message_id,
        publication.timer_id,
        entry.queue_id if entry else None,
        entry.queue_offset if entry else None,
    )


def handle(message_id: uuid.UUID, timer_id: uuid.UUID | None, level_queue: int | None, level_offset: int | None) -> str:
    """The handle of a message that waits in a timer, or at an offset of a level's queue."""
    handle = Handle(message_id, timer_id, level_queue, level_offset)
    return base64.urlsafe_b64encode(msgspec.json.encode(handle)).decode().rstrip("=")


class Waits(Protocol):
    """The fields of an answer that show that its message was delayed."""

    queue_id: int
    queue_offset: int | None
    deliver_at: datetime | UnsetType
    recall_handle: str | UnsetType
    recalled: bool | UnsetType


async def standings(batch: Batch, message_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Standing]:
    """For each of these messages whether it is now visible, waiting or neither, by message id."""
    if not message_ids:
        return {}
    parameters = {"message_ids": list(message_ids), "scheduler": progress.SCHEDULER}
    return {row.message_id: row for row in await batch.read(FIND_STANDINGS, parameters)}


def stand(answer: Waits, row: Standing) -> None:
    """Sets the present state of the message in the answer to a repeated request: visible, waiting or recalled."""
    if row.visible and row.queue_id is not None:
        answer.queue_id, answer.queue_offset = row.queue_id, row.queue_offset
    elif row.due_at is not None:
        answer.deliver_at = exact(row.due_at)
        answer.recall_handle = handle(row.message_id, row.timer_id, row.queue_id, row.queue_offset)
    elif row.kept:
        answer.recalled = True


def message_of(recall_handle: str) -> uuid.UUID:
    """The message of a recall handle. Raises MessageIllegal if the text is not a recall handle."""
    return _read(recall_handle).message_id


async def recall(recall_handle: str, note: Note | None = None) -> Recalled:
    """Takes a delayed message back before it becomes visible; a repeated recall has the same answer.

    Raises AlreadyDelivered when the message is already visible, MessageIllegal for an invalid `recall_handle`.
    """
    given = _read(recall_handle)
    async with holders.of_message(given.message_id):
        return await writer.run(Recall(given), note)


async def recall_message(message_id: uuid.UUID, note: Note | None = None) -> Recalled:
    """Finds where a delayed message waits, and recalls it like `recall`.

    Also raises MessageNotFound, or AlreadyDelivered when the message does not wait.
    """
    parameters = {"message_ids": [message_id], "scheduler": progress.SCHEDULER}
    async with holders.of_message(message_id):
        rows = await connections.read(FIND_STANDINGS, parameters)
    if not rows:
        raise lookup.not_found(message_id)
    [row] = rows
    if row.visible or row.due_at is None:
        raise AlreadyDelivered(
            f"Message {message_id} is not waiting for a delay: it was already delivered or recalled."
        )
    return await recall(handle(row.message_id, row.timer_id, row.queue_id, row.queue_offset), note)


def waiting(message_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, datetime]:
    """The due times of these messages, in UTC, by message id; a message that does not wait is missing."""
    rows = sync.read(FIND_STANDINGS, {"message_ids": list(message_ids), "scheduler": progress.SCHEDULER})
    return {row.message_id: row.due_at.astimezone(UTC) for row in rows if not row.visible and row.due_at is not None}


def _read(recall_handle: str) -> Handle:
    try:
        packed = base64.urlsafe_b64decode(recall_handle + "=" * (-len(recall_handle) % 4))
        handle = msgspec.json.decode(packed, type=Handle)
        if handle.names_one_wait:
            return handle
    except (ValueError, msgspec.DecodeError):
        pass
    raise MessageIllegal(
        f"recall_handle {recall_handle[:60]!r} is not valid: give the recall_handle that the answer to the "
        "delayed send contained."
    )


class Recall(Operation[Recalled]):
    """Recalls a timer by deleting it, and a level's entry by a row that the release reads under the same lock."""

    __slots__ = ("handle",)
    URGENT = True

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle.message_id.bytes)
        self.handle = handle

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        await _lock_levels(batch, [one.handle for one in operations])
        for one in operations:
            handle = one.handle
            in_timer = handle.timer_id is not None
            recalled = await (_recall_timer(batch, handle) if in_timer else _recall_entry(batch, handle))
            if recalled:
                one.before = {"state": "DELAYED"}
            else:
                one.refusal = await _refusal(batch, handle.message_id)
            one.result = Recalled(handle.message_id, "RECALLED")


async def _lock_levels(batch: Batch, handles: list[Handle]) -> None:
    level_queues = sorted({handle.level_queue for handle in handles if handle.level_queue is not None})
    if level_queues:
        schedule = await topics.own(topics.SCHEDULE, queues=1)
        await progress.lock(batch, progress.SCHEDULER, [(schedule.id, queue) for queue in level_queues])


async def _recall_timer(batch: Batch, handle: Handle) -> bool:
    rows = await batch.read(DELETE_TIMER, {"id": handle.timer_id, "message_id": handle.message_id})
    return bool(rows)


async def _recall_entry(batch: Batch, handle: Handle) -> bool:
    """Recalls the entry; returns whether it still waited and was not recalled before."""
    schedule = await topics.own(topics.SCHEDULE, queues=1)
    assert handle.level_queue is not None
    assert handle.level_offset is not None
    [position] = await progress.positions(batch, progress.SCHEDULER, [(schedule.id, handle.level_queue)])
    if not max(position.next_offset or 0, position.min_offset) <= handle.level_offset < position.max_offset:
        return False
    entry = {"topic_id": schedule.id, "queue_id": handle.level_queue, "queue_offset": handle.level_offset}
    return bool(await batch.read(INSERT_RECALL, {**entry, "message_id": handle.message_id}))


async def _refusal(batch: Batch, message_id: uuid.UUID) -> Refusal | None:
    """The refusal if the message was delivered; None if it was recalled before."""
    rows = await batch.read(FIND_FATE, {"message_id": message_id})
    if rows and rows[0].visible:
        return AlreadyDelivered(f"Message {message_id} was delivered before the recall: its consumers have it.")
    if not rows or not rows[0].kept:
        return AlreadyDelivered(
            f"Message {message_id} is no longer waiting, and the broker no longer knows whether it was "
            "delivered or recalled."
        )
    return None
