"""The fields of a message: as sent, as a record for the commit log, as a row, and in answers."""

import base64
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Self

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from store.db import arrays
from store.messages.compression import Compression, of_form
from store.messages.times import Time, exact

MAX_PROPERTIES_BYTES = 16 * 1024
MAX_SHARDING_KEY = 64
# The most characters of a W3C trace context, which has 55 today.
MAX_TRACEPARENT = 128
# The form of a body that was sent as text. Other forms are base64 and the names of compressions.
TEXT = "text"


class Message(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A message as its producer sends it; `checked` validates it."""

    topic: str = ""
    body: str | None = None
    body_base64: str | None = None
    # The compression of the bytes in body_base64.
    compression: Compression | None = None
    message_id: uuid.UUID | None = None
    tags: str | None = None
    keys: list[str] | None = None
    properties: dict[str, str] | None = None
    sharding_key: str | None = None
    queue_id: int | None = None
    delay_level: int | None = None
    delay_seconds: float | None = None
    deliver_at: Time | None = None
    born_at: Time | None = None
    # The two fields of this table are stored as properties with RocketMQ's names.
    born_host: str | None = None
    max_reconsume_times: int | None = None

    @property
    def kept_properties(self) -> dict[str, str]:
        """The properties of the message that are stored."""
        found = self.properties or {}
        if self.max_reconsume_times is not None:
            found = {"MAX_RECONSUME_TIMES": str(self.max_reconsume_times), **found}
        return found if self.born_host is None else {"BORN_HOST": self.born_host, **found}

    @property
    def body_bytes(self) -> bytes | None:
        """The body, if the producer's protocol sends bytes; JSON cannot."""
        return None

    @property
    def body_form(self) -> str:
        """The form of the body in JSON answers."""
        if self.body_bytes is not None:
            return TEXT if is_text(self.body_bytes) else "base64"
        return TEXT if self.body is not None else self.compression or "base64"


def is_large(message: Message, size: int) -> bool:
    """Whether the body has at least this many characters before it is decoded."""
    return len(message.body or message.body_base64 or message.body_bytes or "") >= size


def is_text(body: bytes) -> bool:
    """Whether a body is valid UTF-8."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


class Record(msgspec.Struct, kw_only=True, gc=False):
    """A message to be appended to the commit log. The append sets its log offset."""

    topic_id: int
    queue_id: int
    message_id: uuid.UUID
    body: bytes
    body_form: str
    born_at: datetime | None
    tags: str | None
    keys: str | None
    sharding_key: str | None
    properties: bytes | None
    traceparent: str | None = None
    transaction_id: uuid.UUID | None = None
    producer_group_id: int | None = None
    log_offset: int = -1

    @classmethod
    def of(
        cls, message: Message, message_id: uuid.UUID, topic_id: int, queue_id: int, body: bytes, traceparent: str | None
    ) -> Self:
        """The record of a valid message. `body` is `checked(message)`."""
        return cls(
            topic_id=topic_id,
            queue_id=queue_id,
            message_id=message_id,
            body=body,
            body_form=TEXT if message.body is not None else message.body_form,
            born_at=message.born_at,
            tags=message.tags,
            keys=" ".join(message.keys) if message.keys else None,
            sharding_key=message.sharding_key,
            properties=msgspec.json.encode(kept) if (kept := message.kept_properties) else None,
            traceparent=traceparent,
        )


# The columns that a message fills, and their packing for pipelined statements, which take NULL for the form of a text
# body.
PACKED = {
    "topic_id": arrays.INT4S,
    "queue_id": arrays.INT4S,
    "message_id": arrays.IDS,
    "born_at": arrays.SPARSE_TIMESTAMPS,
    "tags": arrays.SPARSE_TEXTS,
    "keys": arrays.SPARSE_TEXTS,
    "sharding_key": arrays.SPARSE_TEXTS,
    "traceparent": arrays.SPARSE_TEXTS,
    "properties": arrays.SPARSE_BYTEAS,
    "body": arrays.BYTEAS,
    "body_form": arrays.usually(TEXT),
}
# The columns without topic and queue, which many messages share.
_CONTENT = tuple(PACKED)[2:]
_content_values = attrgetter(*_CONTENT)
# The columns of an append, with the transaction of a half message.
COLUMNS = (*PACKED, "transaction_id", "producer_group_id")


def columns(records: Sequence[Record]) -> dict[str, list[Any]]:
    """For each column, the values of the records."""
    return {name: [getattr(record, name) for record in records] for name in COLUMNS}


def packed(records: Sequence[Record], pack: arrays.Pack = arrays.together) -> dict[str, bytes | None]:
    """For each column of pipelined statements, the packed values of the records; without queues and transactions."""
    by_column = zip(*map(_content_values, records), strict=True)
    return {name: pack(PACKED[name], values) for name, values in zip(_CONTENT, by_column, strict=True)}


class MessageRow(msgspec.Struct, gc=False):
    """A row of the commit log: its columns, in their order. Other types of rows with a message begin with these fields.

    Statements select `m.*`: with a list of columns in each statement a new field would be missing from some answers.
    `Statement` names the row's columns in the place of the star, so that a later version may add a column.

    A Struct, because it is created in 0.1 us, a NamedTuple in 0.2 us.
    """

    segment_id: int
    log_offset: int
    stored_at: datetime
    born_at: datetime | None
    topic_id: int
    queue_id: int
    message_id: uuid.UUID
    transaction_id: uuid.UUID | None
    producer_group_id: int | None
    tags: str | None
    keys: list[str] | None
    sharding_key: str | None
    traceparent: str | None
    properties: bytes | None
    body: bytes
    body_form: str


def row_of(record: Record, segment_id: int, log_offset: int, stored_at: datetime) -> MessageRow:
    """The row of the log for a record, as PostgreSQL would return it in a session with the time zone UTC."""
    given = {
        "segment_id": segment_id,
        "log_offset": log_offset,
        "stored_at": stored_at,
        "born_at": None if record.born_at is None else record.born_at.astimezone(UTC),
        "keys": record.keys.split(" ") if record.keys else None,
    }
    return MessageRow(**{**asdict(record), **given})


class StoredMessage(msgspec.Struct, kw_only=True, gc=False):
    """A stored message in an answer: the fields that were set, and the body in the form in which it was sent."""

    message_id: uuid.UUID
    topic: str
    body: str | UnsetType = UNSET
    body_base64: str | UnsetType = UNSET
    compression: Compression | UnsetType = UNSET
    tags: str | UnsetType = UNSET
    keys: list[str] | UnsetType = UNSET
    sharding_key: str | UnsetType = UNSET
    transaction_id: uuid.UUID | UnsetType = UNSET
    traceparent: str | UnsetType = UNSET
    properties: dict[str, str] | UnsetType = UNSET
    born_at: Time
    stored_at: Time
    commit_log_offset: int
    reconsume_times: int | UnsetType = UNSET


_decoded_properties = msgspec.json.Decoder(dict[str, str]).decode


def stored(row: MessageRow, topic: str) -> StoredMessage:
    """The answer for a stored message. `topic` is the name of its topic.

    Created and encoded for each delivery: 1.5 to 1.9 us as a struct, 1.6 to 2.3 us as a dict.
    """
    is_text = row.body_form == TEXT
    return StoredMessage(
        message_id=row.message_id,
        topic=topic,
        born_at=exact(row.born_at or row.stored_at),
        stored_at=exact(row.stored_at),
        commit_log_offset=row.log_offset,
        body=row.body.decode() if is_text else UNSET,
        body_base64=UNSET if is_text else base64.b64encode(row.body).decode(),
        compression=of_form(row.body_form) or UNSET,
        tags=UNSET if row.tags is None else row.tags,
        keys=UNSET if row.keys is None else row.keys,
        properties=UNSET if row.properties is None else _decoded_properties(row.properties),
        sharding_key=UNSET if row.sharding_key is None else row.sharding_key,
        transaction_id=UNSET if row.transaction_id is None else row.transaction_id,
        traceparent=UNSET if row.traceparent is None else row.traceparent,
    )
