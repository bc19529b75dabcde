"""Takes messages in: from what a producer sent to a record for the commit log, the same through every way in."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from zlib import crc32

import msgspec

from store import errors, log, messages, runtime, topics
from store.commit.batch import Batch
from store.db import arrays
from store.db.uuid7 import new_id
from store.log import Record
from store.messages import Message
from store.queues import tags_code_of
from store.rows import StoredBefore
from store.topics import TopicFacts

# What a row of a batch costs besides its body and its properties: some 30 µs of both processes together.
ROW_BYTES = 256


@dataclass(slots=True)
class Accepted:
    """A message that obeys every rule, ready to be written. `record` is made anew for each attempt to write it."""

    message: Message
    body: bytes
    message_id: uuid.UUID
    topic: TopicFacts
    queue_id: int
    # The client chose the id, so it may have been stored before.
    may_repeat: bool
    traceparent: str | None = None
    properties: bytes | None = field(init=False)

    def __post_init__(self) -> None:
        given = self.message.properties
        self.properties = msgspec.json.encode(given) if given else None

    def record(self, transaction_id: uuid.UUID | None = None, producer_group_id: int | None = None) -> Record:
        """The message as the commit log keeps it."""
        message = self.message
        return Record(
            topic_id=self.topic.id,
            queue_id=self.queue_id,
            message_id=self.message_id,
            body=self.body,
            body_form="text" if message.body is not None else "base64",
            born_at=message.born_at,
            transaction_id=transaction_id,
            producer_group_id=producer_group_id,
            tags=message.tags,
            keys=" ".join(message.keys) if message.keys else None,
            sharding_key=message.sharding_key,
            traceparent=self.traceparent,
            properties=self.properties,
        )


def columns(accepted: Sequence[Accepted]) -> dict[str, bytes]:
    """Messages as the columns, in binary form, that pipelined statements name."""
    messages = [one.message for one in accepted]
    return {
        "topic_id": arrays.int4s([one.topic.id for one in accepted]),
        "queue_id": arrays.int4s([one.queue_id for one in accepted]),
        "message_id": arrays.uuids([one.message_id.bytes for one in accepted]),
        "repeatable": arrays.uuids([one.message_id.bytes for one in accepted if one.may_repeat]),
        "born_at": arrays.timestamps([message.born_at for message in messages]),
        "tags": arrays.texts([message.tags for message in messages]),
        "tags_code": arrays.int8s([tags_code_of(message.tags) for message in messages]),
        "keys": arrays.texts([" ".join(message.keys) if message.keys else None for message in messages]),
        "sharding_key": arrays.texts([message.sharding_key for message in messages]),
        "traceparent": arrays.texts([one.traceparent for one in accepted]),
        "properties": arrays.byteas([one.properties for one in accepted]),
        "body": arrays.byteas([one.body for one in accepted]),
        "body_form": arrays.texts(["text" if message.body is not None else "base64" for message in messages]),
    }


class Turns:
    """Spreads the messages of one process that name no queue over the queues of their topics."""

    def __init__(self) -> None:
        self._turns = count()

    def next(self) -> int:
        return next(self._turns)


async def accept(message: Message, *, traceparent: str | None = None, message_id: uuid.UUID | None = None) -> Accepted:
    """Holds a message to every rule and finds its topic and queue. `message_id` is used when it brings none.

    Raises the refusal that names what is wrong; nothing is stored then.
    """
    body = messages.body_of(message)
    messages.validate(message)
    topic = await topics.for_sending(message.topic)
    chosen = message.message_id or message_id
    return Accepted(
        message=message,
        body=body,
        message_id=chosen or new_id(),
        topic=topic,
        queue_id=_queue_of(message, topic),
        may_repeat=chosen is not None,
        traceparent=traceparent,
    )


def _queue_of(message: Message, topic: TopicFacts) -> int:
    if message.queue_id is not None:
        if not 0 <= message.queue_id < topic.queues:
            raise errors.QueueIllegal(
                f"The topic {topic.name} has no queue {message.queue_id}: its queues are 0 to {topic.queues - 1}."
            )
        return message.queue_id
    if message.sharding_key is not None:
        return crc32(message.sharding_key.encode()) % topic.queues
    return runtime.part(Turns).next() % topic.queues


def size_of(accepted: Sequence[Accepted]) -> int:
    """What messages add to a batch in bytes: bodies, properties, and what a row costs besides."""
    return sum(len(one.body) + len(one.properties or b"") + ROW_BYTES for one in accepted)


async def stored_before(batch: Batch, accepted: Sequence[Accepted]) -> dict[uuid.UUID, StoredBefore]:
    """Those of the messages that are stored already. After a failed attempt even ids of our own are looked for."""
    ids = [one.message_id for one in accepted if one.may_repeat or batch.again]
    return await log.find(batch.connection, ids) if ids else {}


def validate_repeat(accepted: Accepted, stored: StoredBefore, *, transactional: bool = False) -> None:
    """Raises MessageIdReused unless the stored message is the same one.

    A half message is no repeat of a message that was sent at once, nor the other way round: no sender may be answered
    that it is done while a transaction still may roll it back.
    """
    same_way = (stored.transaction_id is not None) == transactional
    if stored.topic_id != accepted.topic.id or stored.body != accepted.body or not same_way:
        raise errors.MessageIdReused(
            f"The message_id {accepted.message_id} was used for another message: use a new id for a new message."
        )
