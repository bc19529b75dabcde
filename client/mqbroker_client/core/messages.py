"""Messages as a program sees them: bytes in, bytes out; how they look in JSON is known only here."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self, TypedDict, Unpack
from uuid import UUID

from mqbroker_client.core.compression import Compression, body_fields, body_of
from mqbroker_client.core.documents import Document, encoded
from mqbroker_client.core.ids import OwnId


class MessageFields(TypedDict, total=False):
    """What a message may have besides its topic and body, as keywords."""

    tags: str | None
    keys: str | Sequence[str]
    properties: Mapping[str, str]
    sharding_key: str | None
    queue_id: int | None
    delay_level: int | None
    delay_seconds: float | None
    deliver_at: datetime | None
    born_at: datetime | None
    born_host: str | None
    max_reconsume_times: int | None
    message_id: UUID
    traceparent: str | None


@dataclass(frozen=True, slots=True)
class Message:
    """What a producer hands over. Its id is made with it: sending the same object again stores nothing new.

    In a new transaction the same object is a new message, under a new id, unless the program chose its id.
    """

    topic: str
    #: 1 byte to 4 MiB by the broker's default. A text is sent as UTF-8.
    body: bytes
    #: One word or more, without `|`: what a tag expression of a consumer is compared with.
    tags: str | None = None
    #: For look-up, each without blanks. A text alone is one key.
    keys: Sequence[str] = ()
    #: Up to 128, which an SQL filter of a consumer reads. RocketMQ's own names, such as KEYS, are refused.
    properties: Mapping[str, str] = field(default_factory=dict)
    #: Messages of a topic with the same sharding key, of 64 characters at most, go to one queue, in order.
    sharding_key: str | None = None
    #: The queue, from 0; by default the broker chooses one.
    queue_id: int | None = None
    #: Visible after the delay of this level, from 1: one of the broker's list. At most one of the three delays.
    delay_level: int | None = None
    #: Visible so many seconds after it is stored, or after the commit of its transaction.
    delay_seconds: float | None = None
    #: Visible at this time, which needs a zone.
    deliver_at: datetime | None = None
    #: When it came into being, with a zone; by default the time at which it is stored.
    born_at: datetime | None = None
    #: Where it came into being, in the program's own words, of 255 characters at most.
    born_host: str | None = None
    #: Retries of this message before it is a dead letter, whatever its group says. 0 to 1,000.
    max_reconsume_times: int | None = None
    message_id: UUID = field(default_factory=OwnId.make)
    #: The W3C trace context that is stored with it; of the span that the caller is in where OpenTelemetry is installed.
    traceparent: str | None = None

    @classmethod
    def of(
        cls, topic: str, body: bytes | str | None = None, *, json: object = None, **fields: Unpack[MessageFields]
    ) -> "Message":
        """A message of bytes, of a text, or of what `json` is as JSON.

        Raises TypeError without one of them, and ValueError for a number that JSON does not have: NaN, an infinity.
        """
        return Message(topic, encoded_body(body, json), **fields)

    def __post_init__(self) -> None:
        if isinstance(self.body, str):
            object.__setattr__(self, "body", self.body.encode())
        elif not isinstance(self.body, bytes | bytearray):
            raise TypeError(f"a body is bytes or a text, not {type(self.body).__name__}: json=… takes what is JSON")
        # A text is a sequence too: of its characters.
        if isinstance(self.keys, str):
            object.__setattr__(self, "keys", (self.keys,))

    def within(self, transaction_id: UUID) -> "Message":
        """The message as this transaction has it: under its own id, or a new one where another transaction had that."""
        if not isinstance(self.message_id, OwnId):
            return self
        message_id = self.message_id.within(transaction_id)
        return self if message_id is self.message_id else replace(self, message_id=message_id)

    def document(self, compression: Compression | None = None) -> Document:
        """The message as the broker's API takes it: only what was set. A long body is compressed."""
        given: Document = {
            "topic": self.topic,
            **body_fields(self.body, compression),
            "message_id": str(self.message_id),
            "tags": self.tags,
            "keys": list(self.keys) or None,
            "properties": dict(self.properties) or None,
            "sharding_key": self.sharding_key,
            "queue_id": self.queue_id,
            "delay_level": self.delay_level,
            "delay_seconds": self.delay_seconds,
            "deliver_at": timestamp(self.deliver_at),
            "born_at": timestamp(self.born_at),
            "born_host": self.born_host,
            "max_reconsume_times": self.max_reconsume_times,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage(Message):
    """A message as a consumer gets it."""

    #: By the broker's clock.
    stored_at: datetime
    commit_log_offset: int
    transaction_id: UUID | None = None
    #: The retries before this delivery; 0 at the first.
    reconsume_times: int = 0

    @classmethod
    def read(cls, document: Document) -> Self:
        """What the API's JSON says."""
        return cls(
            **message_fields(document),
            stored_at=datetime.fromisoformat(document["stored_at"]),
            commit_log_offset=document["commit_log_offset"],
            transaction_id=_uuid(document.get("transaction_id")),
            reconsume_times=document.get("reconsume_times", 0),
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """A message at its place in a queue."""

    message: StoredMessage
    queue_id: int
    queue_offset: int

    @property
    def body(self) -> bytes:
        return self.message.body

    def json(self) -> Any:
        """What the body is as JSON. Raises ValueError where it is none."""
        return json.loads(self.body)

    @classmethod
    def read(cls, document: Document) -> Self:
        """What the API's JSON says."""
        return cls(StoredMessage.read(document["message"]), document["queue_id"], document["queue_offset"])


@dataclass(frozen=True, slots=True)
class Delivery(Entry):
    """An entry that was received by a consumer group, hidden from it until it is acked or its time is over."""

    receipt_handle: str = field(repr=False)
    #: 1 at the first delivery.
    delivery_attempt: int
    #: Whether the delivery before ended without a reason, as when its consumer died of it: handle no other beside it.
    alone: bool = False

    @classmethod
    def read(cls, document: Document) -> Self:
        """What the API's JSON says."""
        return cls(
            StoredMessage.read(document["message"]),
            document["queue_id"],
            document["queue_offset"],
            document["receipt_handle"],
            document["delivery_attempt"],
            document.get("alone", False),
        )


def encoded_body(body: bytes | str | None, json: object = None) -> bytes:
    """The bytes of a body. Raises TypeError unless exactly one of the two is there; `json=None` is none."""
    if (body is None) == (json is None):
        raise TypeError("a message has a body or json: give one of them")
    if body is None:
        return encoded(json).encode()
    return body.encode() if isinstance(body, str) else body


def timestamp(moment: datetime | None) -> str | None:
    """RFC 3339; a time without a zone would mean another moment on each machine, so it is refused."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; give one, for example datetime.now(UTC)")
    return moment.isoformat()


def message_fields(document: Document) -> dict[str, Any]:
    """The fields of a message in JSON, as `Message` takes them.

    A stored message has two of them as properties, by RocketMQ's names.
    """
    properties = dict(document.get("properties") or {})
    retries = properties.pop("MAX_RECONSUME_TIMES", None)
    return {
        "topic": document["topic"],
        "body": body_of(document),
        "tags": document.get("tags"),
        "keys": tuple(document.get("keys") or ()),
        "properties": properties,
        "sharding_key": document.get("sharding_key"),
        "queue_id": document.get("queue_id"),
        "delay_level": document.get("delay_level"),
        "delay_seconds": document.get("delay_seconds"),
        "deliver_at": moment_of(document.get("deliver_at")),
        "born_at": moment_of(document.get("born_at")),
        "born_host": properties.pop("BORN_HOST", None) or document.get("born_host"),
        "max_reconsume_times": document.get("max_reconsume_times") if retries is None else int(retries),
        "message_id": UUID(document["message_id"]),
        "traceparent": document.get("traceparent"),
    }


def moment_of(text: str | None) -> datetime | None:
    """The moment of a timestamp of the API's."""
    return None if text is None else datetime.fromisoformat(text)


def _uuid(text: str | None) -> UUID | None:
    return None if text is None else UUID(text)


def handles_of(deliveries: Iterable[Delivery]) -> list[str]:
    """The receipt handles of deliveries, in their order."""
    return [delivery.receipt_handle for delivery in deliveries]
