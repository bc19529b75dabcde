"""The operation of a redrive: publishes dead letters again, each once, within their cell."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from delivery import groups
from delivery.dead_letters.lists import NEXT_DEAD_LETTERS, DeadLetterHead
from delivery.rows import GroupFacts
from scheduling.publish import Publication, publish
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.db.statements import Statement
from store.errors import MessageNotFound, Refusal, TopicNotExist
from store.naming.topics import FIND_TOPICS, TopicFacts
from store.process import runtime
from store.reading import progress

FIND_DEAD_LETTERS = Statement(__file__, "find_dead_letters", DeadLetterHead)
INSERT_REDRIVES = Statement(__file__, "insert_redrives")

MAX_REDRIVEN = 1000


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter that was sent again, and the topic to which it was sent."""

    message_id: uuid.UUID
    topic: str


@dataclass(frozen=True, slots=True)
class Redriven:
    """The result of a redrive: a Letter or a Refusal for each dead letter, and the offset where the next redrive
    begins.
    """

    results: Sequence[Letter | Refusal]
    next_offset: int


class Redrive(Operation[Redriven]):
    """Sends dead letters of a group again; without `message_ids` the oldest MAX_REDRIVEN between two offsets.

    Each letter is published and recorded as redriven, under the lock of the group's dead letters.
    """

    __slots__ = ("dead_letters", "from_offset", "group", "message_ids", "to_topic", "until_offset")

    def __init__(
        self,
        group: GroupFacts,
        dead_letters: TopicFacts,
        message_ids: list[uuid.UUID] | None,
        to_topic: TopicFacts | None,
    ) -> None:
        super().__init__()
        self.group = group
        self.dead_letters = dead_letters
        self.message_ids = message_ids
        self.to_topic = to_topic
        self.from_offset = self.until_offset = 0

    def within(self, from_offset: int, until_offset: int) -> "Redrive":
        """The same redrive, for the letters between two offsets."""
        redrive = Redrive(self.group, self.dead_letters, self.message_ids, self.to_topic)
        redrive.from_offset, redrive.until_offset = from_offset, until_offset
        return redrive

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        for one in operations:
            await progress.lock(batch, one.group.id, [(one.dead_letters.id, 0)])
            letters = await _letters(batch, one)
            became = await _send_all(batch, one, own(letters))
            asked = list(became) if one.message_ids is None else one.message_ids
            results = [became.get(message_id) or unknown(one, message_id) for message_id in asked]
            is_full = one.message_ids is None and len(letters) == MAX_REDRIVEN
            one.result = Redriven(results, letters[-1].queue_offset + 1 if is_full else one.until_offset)


async def _letters(batch: Batch, wanted: Redrive) -> list[DeadLetterHead]:
    of_group = {"group_id": wanted.group.id, "topic_id": wanted.dead_letters.id}
    if wanted.message_ids is None:
        page = {"from_offset": wanted.from_offset, "until_offset": wanted.until_offset, "max_entries": MAX_REDRIVEN}
        return list(await batch.read(NEXT_DEAD_LETTERS, of_group | page))
    rows = await batch.read(FIND_DEAD_LETTERS, {**of_group, "message_ids": wanted.message_ids})
    # A message that became a dead letter twice is redriven once, by its newest letter.
    return list({row.message_id: row for row in rows}.values())


async def _send_all(
    batch: Batch, wanted: Redrive, letters: Sequence[DeadLetterHead]
) -> dict[uuid.UUID, Letter | Refusal]:
    """Sends the letters; returns a Letter or a Refusal for each. The letter of a deleted topic stays a dead letter."""
    origins = {letter.topic_id for letter in letters}
    if wanted.to_topic is None:
        origins = {row.id for row in await batch.read(FIND_TOPICS, {"names": [], "ids": list(origins)})}
    return {
        letter.message_id: await _send(batch, wanted, letter) if letter.topic_id in origins else _orphaned(letter)
        for letter in letters
    }


def own(letters: Sequence[DeadLetterHead]) -> list[DeadLetterHead]:
    """The letters whose topics lie in this cell. After a split, copies of letters of other topics may be left here."""
    return runtime.here().departed.left_out(letters, lambda letter: (letter.topic_id,))


def _orphaned(letter: DeadLetterHead) -> TopicNotExist:
    return TopicNotExist(
        f"The topic of message {letter.message_id} was deleted: give to_topic.", message_id=letter.message_id
    )


async def _send(batch: Batch, wanted: Redrive, letter: DeadLetterHead) -> Letter:
    topic, queue_id = await _destination(wanted, letter)
    await publish(
        batch,
        Publication(
            message_id=letter.message_id,
            topic_id=topic.id,
            queue_id=queue_id,
            log_segment=letter.segment_id,
            log_offset=letter.log_offset,
            tags_code=letter.tags_code,
        ),
    )
    batch.insert(INSERT_REDRIVES, {"group_id": wanted.group.id, "queue_offset": letter.queue_offset})
    return Letter(letter.message_id, topic.name)


async def _destination(wanted: Redrive, letter: DeadLetterHead) -> tuple[TopicFacts, int]:
    if wanted.to_topic is not None:
        return wanted.to_topic, letter.queue_id % wanted.to_topic.queues
    queue_id = await groups.retry_queue_of(wanted.group.id, wanted.group.name, letter.topic_id)
    return await groups.retry_topic(wanted.group.name), queue_id


def unknown(wanted: Redrive, message_id: uuid.UUID) -> MessageNotFound:
    """The refusal for a message that is not a dead letter of the group."""
    return MessageNotFound(
        f"Message {message_id} is not among the dead letters of {wanted.group.name}: it never became one, or was "
        "already redriven.",
        message_id=message_id,
    )
