"""Accepts messages: validates the messages of a producer's call, and makes their records for the commit log."""

import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Self

import msgspec
from msgspec.structs import replace

from store import errors, messages
from store.db import arrays, connections
from store.db.arrays import Pack
from store.db.statements import Statement
from store.messages import Message, Record, first_uses, placing
from store.messages.ids import in_cell, new_id, new_ids
from store.messages.properties import tags_code_of
from store.naming import topics
from store.naming.topics import TopicFacts
from store.process.configuration import setting
from store.rows import StoredBefore

FIND_MESSAGES = Statement(__file__, "find_messages", StoredBefore)

# Bytes that count for each row of a batch besides body and properties, for the 30 µs of work of this process and
# PostgreSQL for a row.
ROW_BYTES = 256


class Accepted(msgspec.Struct, gc=False):
    """A valid message, ready to be written."""

    message: Message
    topic: TopicFacts
    # The client chose the id, so the message may have been stored before.
    may_repeat: bool
    # The record, from which each attempt to write makes a copy.
    content: Record

    @property
    def message_id(self) -> uuid.UUID:
        return self.content.message_id

    @property
    def queue_id(self) -> int:
        return self.content.queue_id

    @property
    def body(self) -> bytes:
        return self.content.body

    def record(self, transaction_id: uuid.UUID | None = None, producer_group_id: int | None = None) -> Record:
        """A new record for one attempt to write the message."""
        return replace(self.content, transaction_id=transaction_id, producer_group_id=producer_group_id)


class Parcel(msgspec.Struct, gc=False):
    """The valid messages of one request for one queue; they are stored together."""

    topic: TopicFacts
    records: Sequence[Record]
    # The message ids that the client chose.
    repeatable: Sequence[uuid.UUID]

    @classmethod
    def of(cls, accepted: Accepted) -> Self:
        """A parcel that has only this message."""
        return cls(accepted.topic, (accepted.content,), (accepted.message_id,) if accepted.may_repeat else ())

    def each(self, given: Sequence[Message]) -> list[Accepted]:
        """A parcel for each message. `given`: the messages of the request from which this parcel was made."""
        chosen = set(self.repeatable)
        pairs = zip(given, self.records, strict=True)
        return [Accepted(message, self.topic, record.message_id in chosen, record) for message, record in pairs]


def columns(
    records: Sequence[Record], repeatable: Iterable[uuid.UUID], pack: Pack = arrays.together
) -> dict[str, bytes | None]:
    """The columns of messages in binary form, by the names of parameters of pipelined statements."""
    return {
        **contents(records, pack),
        "topic_id": pack(arrays.INT4S, [record.topic_id for record in records]),
        "queue_id": pack(arrays.INT4S, [record.queue_id for record in records]),
        "repeatable": pack(arrays.UUIDS, [message_id.bytes for message_id in repeatable]),
    }


def contents(records: Sequence[Record], pack: Pack = arrays.together) -> dict[str, bytes | None]:
    """The columns of `columns` without topic, queue and the ids that may already be stored."""
    codes = [None if record.tags is None else tags_code_of(record.tags) for record in records]
    return {**messages.packed(records, pack), "tags_code": pack(arrays.SPARSE_INT8S, codes)}


async def accept(
    message: Message,
    *,
    traceparent: str | None = None,
    message_id: uuid.UUID | None = None,
    beside: str | None = None,
) -> Accepted:
    """Validates a message and finds its topic and queue. `message_id` is its id if the producer chose none.

    A new topic is created in the cell and home of the topic `beside`, as `topics.for_sending` does.

    Raises the refusal that names the error; then nothing was stored.
    """
    body = messages.checked(message)
    await messages.require_readable(message)
    chosen = message.message_id or message_id
    topic = await for_messages(message.topic, message.queue_id, [] if chosen is None else [chosen], beside)
    return _accepted(message, body, topic, traceparent, message_id)


def accept_known(message: Message, traceparent: str | None, message_id: uuid.UUID | None = None) -> Accepted | None:
    """Accepts without waiting. None if a look-up of the topic or a long decompression is needed."""
    is_soon = message.compression is None or messages.is_soon_read(message)
    topic = topics.known_for_sending(message.topic) if is_soon else None
    return None if topic is None else _accepted(message, messages.checked(message), topic, traceparent, message_id)


def _accepted(
    message: Message, body: bytes, topic: TopicFacts, traceparent: str | None, message_id: uuid.UUID | None
) -> Accepted:
    chosen = message.message_id or message_id
    made = chosen or new_id()
    if topic.cell_id and chosen is None:
        made = in_cell(made, topic.cell_id)
    content = Record.of(message, made, topic.id, placing.queue_of(message, topic), body, traceparent)
    return Accepted(message, topic, may_repeat=chosen is not None, content=content)


async def accept_together(given: Sequence[Message], topic_name: str, traceparent: str | None) -> Parcel:
    """Validates the messages of a batch and finds their topic and common queue.

    Raises the refusal of `accept` for the first message that breaks a rule.
    """
    await messages.require_readable(*given)
    topic = topics.known_for_sending(topic_name)
    if topic is None:
        # The message is validated before its topic is looked up, because an invalid message must not create a topic.
        _ = [messages.checked(message) for message in given]
        queue_id = next((message.queue_id for message in given if message.queue_id is not None), None)
        chosen = [message.message_id for message in given if message.message_id is not None]
        topic = await for_messages(topic_name, queue_id, chosen)
    return accept_for(topic, given, traceparent)


async def for_messages(
    topic_name: str, queue_id: int | None, chosen: Sequence[uuid.UUID], beside: str | None = None
) -> TopicFacts:
    """The topic of messages with these ids, which the client chose, found or created like in `topics.for_sending`.

    Also raises MessageIdReused if the topic does not exist and one of the ids is stored already.
    """

    async def is_first_use() -> bool:
        return await topics.find_for_sending(topic_name) is None

    if chosen:
        require = partial(require_unused, chosen, is_first_use, lambda: topics.forget(topic_name))
        await first_uses.at_first_use(is_first_use, require)
    return await topics.for_sending(topic_name, queue_id, beside)


async def require_unused(
    message_ids: Sequence[uuid.UUID], is_first_use: Callable[[], Awaitable[bool]], forget: Callable[[], None]
) -> None:
    """Raises MessageIdReused for the first use of a topic or a group by a message that is stored already.

    If the message is stored, looks the topic or group up again: another request with the same message may just have
    created it and stored the message. `forget` drops the cached value and running look-ups of other requests, which may
    have read the table before.
    """
    asked = {"message_ids": list(message_ids)}
    stored = {row.message_id for row in await connections.read_everywhere(FIND_MESSAGES, asked)} if message_ids else ()
    if stored:
        forget()
    if stored and await is_first_use():
        raise _reused(next(id_ for id_ in message_ids if id_ in stored))


def accept_for(topic: TopicFacts, given: Sequence[Message], traceparent: str | None) -> Parcel:
    """Accepts messages as `accept_together` does, for a known topic and bodies that can be decompressed."""
    bodies = [messages.checked(message) for message in given]
    repeatable = [message.message_id for message in given if message.message_id is not None]
    validate_together(bodies, repeatable, "batch")
    queue_id = placing.common_queue(given, topic)
    made = iter(_ids_in(topic.cell_id, len(given) - len(repeatable)))
    records = [
        Record.of(message, message.message_id or next(made), topic.id, queue_id, body, traceparent)
        for message, body in zip(given, bodies, strict=True)
    ]
    return Parcel(topic, records, repeatable)


def _ids_in(cell: int, count: int) -> list[uuid.UUID]:
    made = new_ids(count)
    return [in_cell(one, cell) for one in made] if cell else made


def validate_together(bodies: Sequence[bytes], chosen_ids: Sequence[uuid.UUID], together: str) -> None:
    """Checks the total size and the ids of the messages of one request. `together` is the word for the request.

    Raises MessageTooLarge or MessageIdReused.
    """
    if (size := sum(map(len, bodies))) > (limit := setting("MAX_MESSAGE_BYTES")):
        raise errors.MessageTooLarge(f"The bodies have {size} bytes together, the limit is {limit}.")
    if len(set(chosen_ids)) < len(chosen_ids):
        raise errors.MessageIdReused(
            f"Two messages of the {together} have the same message_id: give each message another id."
        )


def size_of(records: Sequence[Record]) -> int:
    """The bytes that messages add to a batch: bodies, properties and ROW_BYTES each."""
    size = len(records) * ROW_BYTES
    for record in records:
        size += len(record.body) + (len(record.properties) if record.properties else 0)
    return size


def validate_repeat(accepted: Accepted, stored: StoredBefore, *, transactional: bool = False) -> None:
    """Raises MessageIdReused unless the stored message is the same message.

    A half message is not the same as a sent message with its id, because its transaction may still be rolled back, and
    then a send with this id would have been answered but not stored.
    """
    same_way = (stored.transaction_id is not None) == transactional
    if stored.topic_id != accepted.topic.id or stored.body != accepted.body or not same_way:
        raise _reused(accepted.message_id)


def _reused(message_id: uuid.UUID) -> errors.MessageIdReused:
    return errors.MessageIdReused(
        f"The message_id {message_id} was used for another message: use a new id for a new message."
    )
