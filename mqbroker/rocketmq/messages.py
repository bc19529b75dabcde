"""Converts messages between RocketMQ's protocol and the broker's fields, in both directions."""

import base64
import contextlib
import hashlib
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from mqbroker.rocketmq import times
from mqbroker.rocketmq.protocol.definition_pb2 import (
    Code,
    DeadLetterQueue,
    Digest,
    DigestType,
    Encoding,
    Message,
    MessageType,
    Resource,
    SystemProperties,
)
from mqbroker.rocketmq.statuses import Refused
from scheduling.sending.batches import BatchedMessage
from store.errors import MessageTooLarge
from store.messages import TEXT, MessageRow, unpacking
from store.messages import Message as Given
from store.messages.compression import GZIP, Unreadable, of_form, pieces
from store.messages.fields import MAX_TRACEPARENT
from store.messages.ids import of_int
from store.messages.properties import CONTROL
from store.process import pacing
from store.process.configuration import setting
from transactions.operations.validation import BeginTransaction

# A client's message id begins with the version of its format.
VERSION = "01"
ID_CHARACTERS = 34
# RocketMQ's property for the delivery time of a delayed message, in milliseconds since 1970.
DELIVER_MS = "TIMER_DELIVER_MS"
# System properties, which the broker stores as properties; a producer may not set them itself.
OF_THE_SYSTEM = (DELIVER_MS, "BORN_HOST", "MAX_RECONSUME_TIMES", "TRANSACTION_CHECK_TIMES")
KINDS = frozenset(
    (
        MessageType.MESSAGE_TYPE_UNSPECIFIED,
        MessageType.NORMAL,
        MessageType.FIFO,
        MessageType.DELAY,
        MessageType.TRANSACTION,
    )
)
ENCODINGS = frozenset((Encoding.ENCODING_UNSPECIFIED, Encoding.IDENTITY, Encoding.GZIP))
UNSUPPORTED = {
    MessageType.LITE: (Code.ILLEGAL_LITE_TOPIC, "This broker has no lite topics: send to a topic."),
    MessageType.PRIORITY: (Code.UNSUPPORTED, "This broker has no message priorities: leave the priority out."),
}
_properties = msgspec.json.Decoder(dict[str, str]).decode


class GivenBytes(Given, kw_only=True):
    """A message whose body arrived as bytes."""

    body_bytes: bytes

    @property
    def kept_properties(self) -> dict[str, str]:
        return with_time(self)


class BatchedBytes(BatchedMessage, kw_only=True):
    """A message of a batch whose body arrived as bytes."""

    body_bytes: bytes


class HalfOfBytes(BeginTransaction, kw_only=True):
    """A half message whose body arrived as bytes."""

    body_bytes: bytes


def with_time(message: Given) -> dict[str, str]:
    """The properties of a message as they are stored, including the property with its delivery time."""
    found = Given.kept_properties.fget(message)  # type: ignore[attr-defined]  # a property, called through its class
    return found if message.deliver_at is None else {DELIVER_MS: str(_milliseconds(message.deliver_at)), **found}


def id_of(text: str) -> uuid.UUID:
    """The message_id in a client's form of id. Raises Refused for another form of id."""
    digits = text[len(VERSION) :]
    # The characters are checked first, because int() also accepts signs and underscores.
    if len(text) == ID_CHARACTERS and text.startswith(VERSION) and digits.isascii() and digits.isalnum():
        with contextlib.suppress(ValueError):
            return of_int(int(digits, 16))
    raise Refused(Code.ILLEGAL_MESSAGE_ID, f"The message id {text[:60]!r} is none: 01, then 32 hexadecimal digits.")


def text_of(message_id: uuid.UUID) -> str:
    """A message_id in the form of the clients' ids."""
    return VERSION + message_id.hex.upper()


async def fields_of(message: Message, topic: str) -> dict[str, Any]:
    """The broker's fields of a message that a client sends.

    Raises Refused or MessageTooLarge.
    """
    system = message.system_properties
    if (kind := system.message_type) not in KINDS:
        raise Refused(*UNSUPPORTED.get(kind, (Code.BAD_REQUEST, f"message_type {kind} is none of the protocol's.")))
    if system.lite_topic:
        raise Refused(*UNSUPPORTED[MessageType.LITE])
    if system.HasField("priority"):
        raise Refused(*UNSUPPORTED[MessageType.PRIORITY])
    found: dict[str, Any] = {"topic": topic, "body_bytes": await _body(message), "message_id": id_of(system.message_id)}
    if tag := system.tag:
        found["tags"] = tag
    if keys := list(system.keys):
        found["keys"] = keys
    if message.user_properties:
        found["properties"] = dict(message.user_properties)
    if group := system.message_group:
        found["sharding_key"] = group
    if system.HasField("born_timestamp"):
        found["born_at"] = times.moment("born_timestamp", system.born_timestamp)
    if system.HasField("delivery_timestamp"):
        found["deliver_at"] = times.moment("delivery_timestamp", system.delivery_timestamp, Code.ILLEGAL_DELIVERY_TIME)
    return found


def traceparent_of(message: Message) -> str | None:
    """The W3C trace context of a message; None if it has none, or an invalid one.

    Raises Refused for control characters, which no field may have.
    """
    given = message.system_properties.trace_context
    if CONTROL.search(given):
        raise Refused(Code.BAD_REQUEST, "trace_context has a character of control: leave it out, or give W3C's form.")
    return given if given and len(given) <= MAX_TRACEPARENT and given.isascii() else None


async def _body(message: Message) -> bytes:
    body = message.body
    if not body:
        raise Refused(Code.MESSAGE_BODY_EMPTY, "The body is empty: give at least one byte.")
    if (encoding := message.system_properties.body_encoding) not in ENCODINGS:
        raise Refused(Code.BAD_REQUEST, f"body_encoding {encoding} is not known: give IDENTITY or GZIP.")
    return await _unpacked(body) if encoding == Encoding.GZIP else body


async def _unpacked(packed: bytes) -> bytes:
    limit, found = setting("MAX_MESSAGE_BYTES"), bytearray()

    def take(piece: bytes) -> None:
        found.extend(piece)
        if len(found) > limit:
            raise MessageTooLarge(f"The decompressed body has more than {limit} bytes, the limit.")

    try:
        await unpacking.current().each(GZIP, packed, take)
    except Unreadable as problem:
        raise Refused(Code.MESSAGE_CORRUPTED, f"The body cannot be unpacked with gzip ({problem}).") from problem
    if not found:
        raise Refused(Code.MESSAGE_BODY_EMPTY, "The body is empty after decompression: give at least one byte.")
    return bytes(found)


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _timestamp(at: datetime) -> Timestamp:
    found = Timestamp()
    found.FromDatetime(at)
    return found


async def answered(row: MessageRow, topic: str) -> Message:
    """A stored message in the protocol's form, without the fields of its delivery; `topic` is the client's name for its
    topic.
    """
    body = row.body
    if (packed := of_form(row.body_form)) is not None:
        body = b"".join([piece async for piece in pacing.each(pieces(packed, body))])
    kept = {} if row.properties is None else _properties(row.properties)
    system = SystemProperties(
        message_id=text_of(row.message_id),
        keys=row.keys or (),
        message_type=_type_of(row, kept),
        born_timestamp=_timestamp(row.born_at or row.stored_at),
        store_timestamp=_timestamp(row.stored_at),
        queue_id=row.queue_id,
        body_encoding=Encoding.IDENTITY,
        # MD5, because each client writes a CRC32 differently; Node's client fails without a digest.
        body_digest=Digest(type=DigestType.MD5, checksum=hashlib.md5(body, usedforsecurity=False).hexdigest().upper()),
        born_host=kept.get("BORN_HOST", ""),
    )
    if row.tags is not None:
        system.tag = row.tags
    if row.sharding_key is not None:
        system.message_group = row.sharding_key
    if row.traceparent is not None:
        system.trace_context = row.traceparent
    if DELIVER_MS in kept:
        system.delivery_timestamp.FromMilliseconds(int(kept[DELIVER_MS]))
    own = {name: value for name, value in kept.items() if name not in OF_THE_SYSTEM}
    return Message(topic=Resource(name=topic), user_properties=own, system_properties=system, body=body)


def row_of(document: Mapping[str, Any]) -> MessageRow:
    """The message in a check's document, as a row of the log."""
    body: str | None = document.get("body")
    return MessageRow(
        segment_id=0,
        log_offset=document["commit_log_offset"],
        stored_at=document["stored_at"],
        born_at=document["born_at"],
        topic_id=0,
        queue_id=document["queue_id"],
        message_id=document["message_id"],
        transaction_id=document["transaction_id"],
        producer_group_id=None,
        tags=document.get("tags"),
        keys=document.get("keys"),
        sharding_key=document.get("sharding_key"),
        traceparent=document.get("traceparent"),
        properties=msgspec.json.encode(document["properties"]),
        body=base64.b64decode(document["body_base64"]) if body is None else body.encode(),
        body_form=TEXT if body is not None else document.get("compression", "base64"),
    )


def _type_of(row: MessageRow, kept: Mapping[str, str]) -> MessageType:
    if row.transaction_id is not None:
        return MessageType.TRANSACTION
    if row.sharding_key is not None:
        return MessageType.FIFO
    return MessageType.DELAY if DELIVER_MS in kept else MessageType.NORMAL


def dead_letter_of(row: MessageRow, origin: str) -> DeadLetterQueue:
    """The origin of a dead letter: its topic and its message."""
    return DeadLetterQueue(topic=origin, message_id=text_of(row.message_id))
