"""Messages as a program sees them, with bodies as bytes. Only this module knows their form in JSON."""

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
    """The optional fields of a message, as keyword arguments."""

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
    """A message to send. Its id is made together with it: sending the same object again stores nothing new.

    In a new transaction the same object is a new message with a new id, unless the program chose its id.
    """

    topic: str
    #: 1 byte to 4 MiB by the broker's default limit. A text is sent as UTF-8.
    body: bytes
    #: One word or several, without `|`; the tag expression of a consumer is compared with it.
    tags: str | None = None
    #: Keys for look-up, each without blanks. A single text is one key.
    keys: Sequence[str] = ()
    #: Up to 128 properties, which a consumer's SQL filter can read. RocketMQ's own names, such as KEYS, are refused.
    properties: Mapping[str, str] = field(default_factory=dict)
    #: Messages of a topic with the same sharding key (at most 64 characters) go to one queue, in order.
    sharding_key: str | None = None
    #: The queue's number, from 0; by default the broker chooses a queue.
    queue_id: int | None = None
    #: The message is visible after the delay of this level, from 1 on. At most one of the three delays may be given.
    delay_level: int | None = None
    #: The message is visible this many seconds after it is stored, or after the commit of its transaction.
    delay_seconds: float | None = None
    #: The message is visible at this time, which needs a time zone.
    deliver_at: datetime | None = None
    #: When the program made the message, with a time zone; by default the time of storing.
    born_at: datetime | None = None
    #: The host that made the message, in the program's own words; at most 255 characters.
    born_host: str | None = None
    #: The number of retries before this message becomes a dead letter, instead of its group's number. 0 to 1,000.
    max_reconsume_times: int | None = None
    message_id: UUID = field(default_factory=OwnId.make)
    #: The W3C trace context stored with the message; by default the caller's span, if OpenTelemetry is installed.
    traceparent: str | None = None

    @classmethod
    def of(
        cls, topic: str, body: bytes | str | None = None, *, json: object = None, **fields: Unpack[MessageFields]
    ) -> "Message":
        """Makes a message from bytes, from a text, or from `json`, which is encoded as JSON.

        Raises TypeError if neither is given, and ValueError for a number that JSON lacks: NaN or infinity.
        """
        return Message(topic, encoded_body(body, json), **fields)

    def __post_init__(self) -> None:
        if isinstance(self.body, str):
            object.__setattr__(self, "body", self.body.encode())
        elif not isinstance(self.body, bytes | bytearray):
            raise TypeError(f"a body is bytes or a text, not {type(self.body).__name__}: json=… takes what is JSON")
        # A text is also a sequence, of its characters.
        if isinstance(self.keys, str):
            object.__setattr__(self, "keys", (self.keys,))

    def within(self, transaction_id: UUID) -> "Message":
        """The message as part of this transaction: with its own id, or with another id if its own id belongs to another
        transaction.
        """
        if not isinstance(self.message_id, OwnId):
            return self
        message_id = self.message_id.within(transaction_id)
        return self if message_id is self.message_id else replace(self, message_id=message_id)

    def document(self, compression: Compression | None = None) -> Document:
        """The message as JSON for the broker's API, with only the fields that are set. A long body is compressed."""
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
    """A stored message, as a consumer receives it."""

    #: The time by the broker's clock.
    stored_at: datetime
    commit_log_offset: int
    transaction_id: UUID | None = None
    #: The number of retries before this delivery; 0 at the first.
    reconsume_times: int = 0

    @classmethod
    def read(cls, document: Document) -> Self:
        """Makes an object from the API's JSON."""
        return cls(
            **message_fields(document),
            stored_at=datetime.fromisoformat(document["stored_at"]),
            commit_log_offset=document["commit_log_offset"],
            transaction_id=_uuid(document.get("transaction_id")),
            reconsume_times=document.get("reconsume_times", 0),
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored message at its place in a queue."""

    message: StoredMessage
    queue_id: int
    queue_offset: int

    @property
    def body(self) -> bytes:
        return self.message.body

    def json(self) -> Any:
        """Decodes the body as JSON. Raises ValueError if it is not JSON."""
        return json.loads(self.body)

    @classmethod
    def read(cls, document: Document) -> Self:
        """Makes an object from the API's JSON."""
        return cls(StoredMessage.read(document["message"]), document["queue_id"], document["queue_offset"])


@dataclass(frozen=True, slots=True)
class Delivery(Entry):
    """An entry that a consumer group has received.

    It is hidden from the group until it is acked or its invisible time is over.
    """

    receipt_handle: str = field(repr=False)
    #: 1 for the first delivery.
    delivery_attempt: int
    #: Whether the previous delivery ended without a reason, for example because its consumer died: handle no other
    #: message at the same time.
    alone: bool = False

    @classmethod
    def read(cls, document: Document) -> Self:
        """Makes an object from the API's JSON."""
        return cls(
            StoredMessage.read(document["message"]),
            document["queue_id"],
            document["queue_offset"],
            document["receipt_handle"],
            document["delivery_attempt"],
            document.get("alone", False),
        )


def encoded_body(body: bytes | str | None, json: object = None) -> bytes:
    """The bytes of a body.

    Raises TypeError unless exactly one of `body` and `json` is given; `json=None` counts as not given.
    """
    if (body is None) == (json is None):
        raise TypeError("a message has a body or json: give one of them")
    if body is None:
        return encoded(json).encode()
    return body.encode() if isinstance(body, str) else body


def timestamp(moment: datetime | None) -> str | None:
    """The time in RFC 3339. Raises ValueError for a time without a zone, which each machine would read differently."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; give one, for example datetime.now(UTC)")
    return moment.isoformat()


def message_fields(document: Document) -> dict[str, Any]:
    """The arguments for `Message` from a message in JSON.

    Two of the fields are properties in a stored message, with RocketMQ's names.
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
    """The time in a timestamp of the API."""
    return None if text is None else datetime.fromisoformat(text)


def _uuid(text: str | None) -> UUID | None:
    return None if text is None else UUID(text)


def handles_of(deliveries: Iterable[Delivery]) -> list[str]:
    """The receipt handles of deliveries, in their order."""
    return [delivery.receipt_handle for delivery in deliveries]
